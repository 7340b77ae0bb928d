# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run`` of scripts and modules, in processes of their own."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from .started import SIMULATED, USES_THE_POOL, run, script


def test_script_on_a_simulated_device_has_the_pool_and_a_summary(tmp_path: Path) -> None:
    path = script(tmp_path, USES_THE_POOL)
    figures, trace = tmp_path / "figures.json", tmp_path / "trace"
    done = run(tmp_path, *SIMULATED, "--json", figures, "--trace", trace, path)
    assert done.stdout == "UvmResourceAdaptor\n"
    assert done.returncode == 0
    assert "simulated" in done.stderr.splitlines()[0]
    assert "40.00 MiB" in done.stderr
    assert json.loads(figures.read_text())["simulated"] is True
    assert trace.stat().st_size > 0


def test_rmms_own_calls_work_on_a_simulated_device(tmp_path: Path) -> None:
    lines = """
        import rmm, rmm.statistics
        rmm.statistics.enable_statistics()
        buffers = [rmm.DeviceBuffer(size=30 << 20) for _ in range(3)]
        print(rmm.statistics.get_statistics().peak_bytes >> 20)
        print(type(rmm.mr.get_current_device_resource()).__name__)
        """
    done = run(tmp_path, *SIMULATED, script(tmp_path, lines))
    assert done.stdout == "90\nStatisticsResourceAdaptor\n"
    assert done.returncode == 0
    assert "90.00 MiB are allocated and 64.00 MiB fit" in " ".join(done.stderr.split())


def test_script_without_a_gpu_runs_and_the_first_line_says_so(tmp_path: Path) -> None:
    path = script(tmp_path, "print(input())")
    done = run(tmp_path, path, stdin="hello\n", RMM_UVM_DRIVER="cuda", CUDA_VISIBLE_DEVICES="")
    assert done.stdout == "hello\n"
    assert done.returncode == 0
    first = done.stderr.splitlines()[0]
    assert first.startswith("rmm_uvm: no device was watched, and no managed pool installed: ")
    assert "driver=" not in done.stderr  # that is for calls; here an option does it
    reason = first.partition(" installed: ")[2].partition(":")[0]
    assert done.stderr.count(reason) == 1
    assert "rmm-uvm doctor` to see" not in done.stderr


def test_script_that_fails_has_its_traceback_before_the_summary(tmp_path: Path) -> None:
    path = script(tmp_path, "def f():\n    raise ValueError('mine')\nf()")
    done = run(tmp_path, *SIMULATED, path)
    assert done.returncode == 1
    traceback, _, summary = done.stderr.partition("ValueError: mine\n")
    assert traceback.count("File ") == traceback.count(str(path)) == 2
    assert summary.startswith("rmm_uvm: simulated")


def test_script_that_exits_keeps_its_status_and_quiet_prints_nothing(tmp_path: Path) -> None:
    path = script(tmp_path, "import sys; print('out'); sys.exit(3)")
    done = run(tmp_path, "--quiet", *SIMULATED, path)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "", 3)


def test_script_interrupted_ends_by_the_signal_after_the_summary(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import atexit, os, signal, time
        atexit.register(lambda: print("theirs at exit", flush=True))
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        """,
    )
    done = run(tmp_path, *SIMULATED, path)
    assert done.returncode == -signal.SIGINT
    assert done.stdout == "theirs at exit\n"
    assert done.stderr.index("KeyboardInterrupt") < done.stderr.index("rmm_uvm: simulated")


@pytest.mark.parametrize("as_command", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_script_terminated_ends_by_the_signal_after_files_and_summary(
    tmp_path: Path, number: signal.Signals, as_command: bool
) -> None:
    path = script(
        tmp_path,
        f"""
        import os, time
        os.kill(os.getpid(), {number.value})
        time.sleep(60)
        """,
    )
    words = ["--", sys.executable, path] if as_command else [path]
    before = signal.signal(number, signal.SIG_DFL)  # nohup ignores one, for the tests too
    try:
        done = run(tmp_path, *SIMULATED, "--json", tmp_path / "figures.json", *words)
    finally:
        signal.signal(number, before)
    assert done.returncode == (128 + number if as_command else -number)
    assert f"the program was ended by {number.name}: " in done.stderr
    assert done.stderr.count("rmm_uvm: simulated") == 1
    assert json.loads((tmp_path / "figures.json").read_text())["simulated"] is True


def test_script_that_handles_termination_goes_on(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        os.kill(os.getpid(), signal.SIGTERM)
        """,
    )
    done = run(tmp_path, *SIMULATED, path)
    assert done.returncode == 7
    assert done.stderr.count("rmm_uvm: simulated") == 1


def test_fork_of_the_script_terminated_prints_no_summary(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import os, signal, time
        if (pid := os.fork()) == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    )
    done = run(tmp_path, *SIMULATED, path)
    assert (done.stdout, done.returncode) == ("-15\n", 0)
    assert done.stderr.count("rmm_uvm: simulated") == 1


def test_script_that_installs_itself_replaces_ours_and_is_told_so(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import rmm, rmm_uvm, time
        ours = rmm.mr.get_per_device_resource(0)
        rmm_uvm.reinitialize("8MiB", libraries=())
        mr = rmm.mr.get_per_device_resource(0)
        print(mr is not ours, type(mr).__name__)
        """,
    )
    done = run(tmp_path, *SIMULATED, "--device-budget", "32MiB", path)
    assert done.stdout == "True UvmResourceAdaptor\n"
    assert done.returncode == 0
    told, first = done.stderr.splitlines()[:2]
    assert "simulated" in first
    assert "the program called rmm_uvm.reinitialize itself" in told
    assert "its own settings held, not --pool-size, --device-budget; its device" in told


def test_script_that_installs_on_another_device_leaves_ours(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import rmm, rmm_uvm
        ours = rmm.mr.get_per_device_resource(0)
        rmm_uvm.reinitialize("8MiB", "32MiB", devices=1, libraries=())
        print(rmm.mr.get_per_device_resource(0) is ours)
        """,
    )
    done = run(tmp_path, *SIMULATED, "--device-budget", "32MiB", path)
    assert done.stdout == "True\n"
    assert "reinitialize" not in done.stderr


def test_script_that_installs_nothing_hears_of_no_other_settings(tmp_path: Path) -> None:
    done = run(tmp_path, *SIMULATED, script(tmp_path, USES_THE_POOL))
    assert done.returncode == 0
    assert "reinitialize" not in done.stderr


def test_options_of_a_pool_that_is_not_installed_are_said(tmp_path: Path) -> None:
    path = script(tmp_path, "x = 1")
    done = run(tmp_path, "--no-pool", *SIMULATED, "--maximum", "32MiB", path)
    assert done.returncode == 0
    assert "rmm_uvm: --no-pool: there is no pool for --pool-size, --maximum\n" in done.stderr
    assert "there is no pool" not in run(tmp_path, *SIMULATED, path).stderr


def test_module_runs_and_no_pool_leaves_memory_alone(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    script(tmp_path / "package", "", "__init__.py")
    script(
        tmp_path / "package",
        """
        import rmm, sys
        print(sys.argv[1:], __package__)
        print(type(rmm.mr.get_per_device_resource(0)).__name__)
        """,
        "__main__.py",
    )
    done = run(tmp_path, "--no-pool", "--quiet", "-m", "package", "--quiet", "x")
    assert done.stdout == "['--quiet', 'x'] package\nCudaMemoryResource\n"
    assert (done.stderr, done.returncode) == ("", 0)


def test_script_that_uses_click_finds_no_context_of_ours(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import click
        print(click.get_current_context(silent=True))
        raise click.UsageError("theirs")
        """,
    )
    done = run(tmp_path, "--no-pool", "--quiet", path)
    assert done.stdout == "None\n"
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")


def test_pool_that_cannot_be_had_stops_before_the_script(tmp_path: Path) -> None:
    path = script(tmp_path, "print('ran')")
    done = run(tmp_path, "--device", "simulated:64MiB", "--pool-size", "900PB", path)
    assert (done.stdout, done.returncode) == ("", 2)
    assert done.stderr.startswith("Error: initial_pool_size")
    assert done.stderr.count("\n") == 1


def test_fork_of_the_script_prints_no_summary(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import os, sys
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        """,
    )
    done = run(tmp_path, *SIMULATED, path)
    assert done.returncode == 0
    assert done.stderr.count("rmm_uvm: simulated") == 1


@pytest.mark.parametrize("kind", ["script", "module", "command"])
def test_view_of_processes_names_the_script_and_not_the_launcher(tmp_path: Path, kind: str) -> None:
    path = script(
        tmp_path,
        """
        import os
        from rmm_uvm.machine.process_facts import name_of
        from rmm_uvm.top.columns import label
        from rmm_uvm.top.view import ProcessRow
        from rmm_uvm.watch.telling.board import Board, read_board

        figures = dict(interval_seconds=1.0, devices=[], snapshots=[], sources={}, findings=[])
        Board().publish(figures)  # the monitor's own may come later
        mine = next(each for each in read_board() if each.pid == os.getpid())
        for name in ("rmm-uvm", name_of(mine.pid)):
            print(label(ProcessRow(mine.pid, name, mine.command)))
        """,
        name="mine.py",
    )
    words = {
        "script": [path, "--fast"],
        "module": ["-m", "mine"],
        "command": ["--", sys.executable, path],
    }[kind]
    done = run(tmp_path, *SIMULATED, *words)
    assert done.returncode == 0, done.stderr
    shown = "-m mine" if kind == "module" else "mine.py"
    assert done.stdout.splitlines() == [shown, shown]

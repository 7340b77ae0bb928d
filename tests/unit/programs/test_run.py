# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run``: the options, and whole runs in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from rmm_uvm.cli import run as cli
from rmm_uvm.cli.afterwards import Afterwards
from rmm_uvm.cli.run import Split, split
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.run import outputs
from rmm_uvm.run.request import Request
from rmm_uvm.run.summary import about_watching, compose

COMMAND = [sys.executable, "-c", "from rmm_uvm.cli.main import main; main()", "run"]
SIMULATED = ["--device", "simulated:64MiB", "--pool-size", "16MiB", "--libraries", "none"]
USES_THE_POOL = """
    import rmm
    mr = rmm.mr.get_per_device_resource(0)
    print(type(mr).__name__)
    pointer = mr.allocate(40 << 20)  # kept, so that the last sample sees it
"""


def run(
    folder: Path, *words: str | Path, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=folder,
        env={**os.environ, **env},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def script(folder: Path, text: str, name: str = "script.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


# --- the command line --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], Split((), "", ())),
        (["--quiet"], Split(("--quiet",), "", ())),
        (["a.py"], Split((), "script", ("a.py",))),
        (["a.py", "--quiet"], Split((), "script", ("a.py", "--quiet"))),
        (["--html", "x", "a.py", "b"], Split(("--html", "x"), "script", ("a.py", "b"))),
        (["--html=x", "a.py"], Split(("--html=x",), "script", ("a.py",))),
        (["-m", "pkg", "-m"], Split((), "module", ("pkg", "-m"))),
        (["-mpkg", "x"], Split((), "module", ("pkg", "x"))),
        (["-m"], Split((), "module", ())),
        (["--quiet", "--", "ls", "-l"], Split(("--quiet",), "command", ("ls", "-l"))),
        (["a.py", "--", "b"], Split((), "script", ("a.py", "--", "b"))),
        (["--html"], Split(("--html",), "", ())),
    ],
)
def test_command_line_ends_where_the_program_begins(words: list[str], expected: Split) -> None:
    assert split(words, frozenset({"--html"})) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to run"),
        (["-m"], "nothing to run"),
        (["--"], "nothing to run"),
        (["--no-such-option", "a.py"], "No such option"),
        (["--interval", "0", "a.py"], "0"),
        (["--interval", "nan", "a.py"], "nan is not a number of seconds"),
        (["--pool-size", "huge", "a.py"], "--pool-size='huge'"),
        (["missing.py"], "'missing.py' cannot be read"),
    ],
)
def test_command_line_that_is_wrong_is_usage(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli.command, words)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "gpu0", "a.py"], "--device 'gpu0': use a number, simulated or simulated:"),
        (["--device", "simulated:", "a.py"], "use a number"),
        (["--device", "simulated:lots", "a.py"], "lots"),
        (["--libraries", "cupy,jax", "a.py"], "--libraries 'jax': use cupy, torch or none"),
        (["--json", "/no/such/folder/x", "a.py"], "--json /no/such/folder/x cannot be written"),
        (["-m", "no_such_module"], "no module named 'no_such_module'"),
    ],
)
def test_option_that_cannot_be_used_is_one_line(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli.command, words)
    assert isinstance(result.exception, (ConfigurationError, AvailabilityError))
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_options_become_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Request] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "rmm_uvm.run.session.prepare", lambda request, program: seen.append(request)
    )
    options = "--no-pool --device 1 --pool-size 2GiB --maximum 0.5 --prefetch never --interval 2"
    options += " --libraries cupy,torch --attribution --faults --json j --on-finding raise --quiet"
    with pytest.raises(Afterwards):
        CliRunner().invoke(cli.command, [*options.split(), str(script(tmp_path, ""))])
    assert seen == [
        Request(
            pool=False,
            device=1,
            pool_size=2 << 30,
            maximum=0.5,
            prefetch="never",
            libraries=("cupy", "torch"),
            interval_seconds=2.0,
            attribution=True,
            faults=True,
            json=str(tmp_path / "j"),
            on_finding="raise",
            quiet=True,
        )
    ]


def test_request_travels_as_text() -> None:
    request = Request(pool_size=0.25, libraries=(), html="/x")
    assert Request.from_json(request.to_json()) == request


# --- files -------------------------------------------------------------------------------------


def test_outputs_checked_are_not_made_and_not_changed(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("kept")
    outputs.check(Request(json=str(old), trace=str(tmp_path / "new")))
    assert old.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [old]


def test_outputs_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "file", "/proc/rmm-uvm"):
        with pytest.raises(ConfigurationError, match=r"--trace .* cannot be written"):
            outputs.check(Request(trace=str(path)))


def test_outputs_of_the_same_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(ConfigurationError, match="--trace and --json name the same file"):
        outputs.check(Request(json=str(tmp_path / "file"), trace=str(tmp_path / "link")))
    outputs.check(Request(json=os.devnull, trace=os.devnull))


def test_outputs_trace_that_holds_another_run_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "t.trace"
    trace.touch()
    outputs.check(Request(trace=str(trace)))  # empty: nothing is lost
    trace.write_bytes(b"of the first run")
    with pytest.raises(ConfigurationError, match=r"--trace .*t.trace exists: name another file"):
        outputs.check(Request(trace=str(trace)))


def test_outputs_html_without_bokeh_is_refused_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AvailabilityError, match="pip install"):
        outputs.check(Request(html=str(tmp_path / "x.html")))


def test_outputs_that_fail_at_the_end_are_a_line(tmp_path: Path) -> None:
    class Report:
        def save_json(self, path: str) -> None:
            raise OSError(28, "No space left on device")

    assert outputs.write(Request(json="/x/y"), Report()) == [
        "/x/y cannot be written: No space left on device"
    ]


# --- the summary -------------------------------------------------------------------------------


def test_summary_has_what_was_not_watched_first() -> None:
    text = compose(about_watching("no GPU", ["a note"]), "body\n", ["x cannot be\nwritten"])
    assert text.splitlines() == [
        "rmm_uvm: no device was watched: no GPU",
        "rmm_uvm: a note",
        "body",
        "rmm_uvm: x cannot be written",
    ]


def test_summary_of_a_watched_device_is_the_report() -> None:
    assert compose(about_watching(None, []), "body\n") == "body"


# --- whole runs --------------------------------------------------------------------------------


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
def test_script_terminated_ends_by_the_signal_after_files_and_summary(
    tmp_path: Path, as_command: bool
) -> None:
    path = script(
        tmp_path,
        """
        import os, signal, time
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
        """,
    )
    words = ["--", sys.executable, path] if as_command else [path]
    done = run(tmp_path, *SIMULATED, "--json", tmp_path / "figures.json", *words)
    assert done.returncode == (128 + signal.SIGTERM if as_command else -signal.SIGTERM)
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


def test_script_that_installs_itself_replaces_ours_and_is_watched(tmp_path: Path) -> None:
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
    done = run(tmp_path, *SIMULATED, path)
    assert done.stdout == "True UvmResourceAdaptor\n"
    assert done.returncode == 0
    assert "simulated" in done.stderr.splitlines()[0]


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
    assert (done.stdout, done.returncode) == ("", 1)
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


# --- commands ----------------------------------------------------------------------------------


def test_command_gives_its_first_python_the_pool_and_a_summary(tmp_path: Path) -> None:
    path = script(tmp_path, USES_THE_POOL)
    figures = tmp_path / "figures.json"
    shell = f"{sys.executable} {path}; {sys.executable} {path.with_name('second.py')}"
    script(tmp_path, "import rmm; print(rmm.mr.get_per_device_resource(0))", "second.py")
    done = run(tmp_path, *SIMULATED, "--json", figures, "--", "sh", "-c", f"{shell}; exit 5")
    assert done.returncode == 5
    assert done.stdout.splitlines()[0] == "UvmResourceAdaptor"
    assert "CudaMemoryResource" in done.stdout.splitlines()[1]
    assert "simulated" in done.stderr.splitlines()[0]
    assert "40.00 MiB" in done.stderr
    assert json.loads(figures.read_text())["simulated"] is True


def test_command_that_is_no_python_is_watched_from_outside(tmp_path: Path) -> None:
    done = run(tmp_path, "--", "sh", "-c", "exit 4")
    assert done.returncode == 4
    assert done.stderr.startswith("rmm_uvm: no device was watched: the command did not use CUDA\n")


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (["no-such-command-here"], 127, "Error: command not found: no-such-command-here\n"),
        (["./data"], 126, "Error: ./data cannot be run: Permission denied\n"),
    ],
)
def test_command_that_cannot_start_is_one_line(
    tmp_path: Path, words: list[str], status: int, line: str
) -> None:
    script(tmp_path, "", "data")
    done = run(tmp_path, "--", *words)
    assert (done.stdout, done.stderr, done.returncode) == ("", line, status)


def test_command_interrupted_passes_the_signal_on_and_tells(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = f"trap 'exit 9' TERM; : > {ready}; while :; do sleep 0.01; done"
    process = subprocess.Popen(
        [*COMMAND, "--", "sh", "-c", text], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not ready.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 9
    assert "the command did not use CUDA" in errors

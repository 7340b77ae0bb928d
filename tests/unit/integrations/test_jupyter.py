# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The magics, in a real shell and in a real kernel, on simulated devices."""

from __future__ import annotations

import asyncio
import atexit
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import rmm_uvm
from rmm_uvm.watch.monitor import running

# The warnings of IPython's own libraries are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

SPILL = """
import rmm, rmm_uvm
device = rmm_uvm.simulated_device("64MiB")
mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
rmm.mr.set_per_device_resource(0, mr)
"""
THRASH = """
pieces = [mr.allocate(16 << 20) for _ in range(6)]
for _ in range(3):
    for piece in pieces:
        device.touch(piece, 16 << 20, True)
"""
FREE = """
for piece in pieces:
    mr.deallocate(piece, 16 << 20)
"""

Run = Callable[[str], Any]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell with the extension loaded, without history on disk and with simulated devices."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    monkeypatch.setattr("IPython.core.history.HistoryAccessor.enabled", False)
    hook, display = sys.excepthook, sys.displayhook
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "rmm_uvm")
    yield shell
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    sys.excepthook, sys.displayhook = hook, display


@pytest.fixture
def run(shell: InteractiveShell) -> Run:
    return lambda text: shell.run_cell(text, store_history=False)


def test_cell_prints_value_and_traffic(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("%%uvm\nx = 20\nx + 1")

    out = capsys.readouterr().out
    assert re.search(r"\[\d+\]: 21\nuvm \(simulated\): [\d.]+ m?s, 0 B to the device, 0 B", out)
    assert not running()


def test_cell_with_a_semicolon_shows_no_value(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("%%uvm\n21;")

    assert "21" not in capsys.readouterr().out.split("uvm")[0]


def test_cell_past_capacity_prints_what_moved_and_advice(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run(SPILL)
    run("monitor = rmm_uvm.monitor(driver=device, on_finding=None, publish=False).start()")
    assert len(running()) == 1

    run(f"%%uvm{THRASH}")

    out = capsys.readouterr().out
    assert re.search(r"uvm \(simulated\): .* MiB to the device, .* MiB to the host, about", out)
    assert "footprint at most " in out
    assert "\n  * " in out
    run(f"{FREE}monitor.stop()")


def test_cell_is_watched_on_the_devices_of_all_calls(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    pools = (
        'rmm_uvm.reinitialize("8MiB", "256MiB", {}, libraries=(), device_budget=None).managed_mr'
    )
    run(f"import rmm_uvm\nmr = {pools.format(0)}\n{pools.format(1)}\ndevice = mr.driver")
    assert len(running()) == 2
    capsys.readouterr()
    run("%%uvm\n" + THRASH)
    told = capsys.readouterr().out
    assert "device 0" in told
    assert "96.00 MiB" in told
    run(FREE)
    rmm_uvm.restore()


NO_TRAFFIC = r"\(simulated\): [\d.]+ m?s, 0 B to the device, 0 B to the host"


@pytest.mark.parametrize(
    ("line", "name"), [("etl", "etl"), ("--faults 'load data'", "load data"), ("a-b", "a-b")]
)
def test_cell_with_a_name_is_a_stage_of_that_name(
    run: Run, capsys: pytest.CaptureFixture[str], line: str, name: str
) -> None:
    run("import rmm_uvm\nmonitor = rmm_uvm.monitor(publish=False, faults=True).start()")
    run(f"%%uvm {line}\nbegun = [stage.name for stage in monitor.recording().stages]\n1 / 0")
    assert re.search(f"^uvm, {name} {NO_TRAFFIC}", capsys.readouterr().out, re.MULTILINE)
    (monitor,) = running()
    (stage,) = monitor.recording().stages
    assert (stage.name, stage.depth) == (name, 0)
    assert stage.end_seconds < monitor.recording().duration_seconds  # though the cell failed
    monitor.stop()


def test_cell_without_a_name_is_in_no_stage(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("import rmm_uvm\nmonitor = rmm_uvm.monitor(publish=False).start()")
    run("%%uvm\n1;")
    assert re.search(f"^uvm {NO_TRAFFIC}", capsys.readouterr().out, re.MULTILINE)
    (monitor,) = running()
    assert monitor.recording().stages == ()
    monitor.stop()


def test_report_tells_what_a_named_cell_moved_and_was_warned_of(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.embed", None)
    run(SPILL)
    run(f"%%uvm thrashing{THRASH}")
    assert re.search(r"^uvm, thrashing \(simulated\): .* to the host", capsys.readouterr().out)
    run("%uvm_report")
    told = capsys.readouterr().out
    assert re.search(r"^ +(\d+ times, first )?at .* in stage thrashing: ", told, re.MULTILINE)
    assert re.search(
        r"^thrashing +[\d.]+ \w+ +[\d.]+ \w+ +[\d.]+ MiB +[\d.]+ MiB", told, re.MULTILINE
    )
    run(FREE)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("etl load", "%%uvm takes one name for the cell's stage, and got 'etl' 'load': write"),
        ("''", "%%uvm takes one name for the cell's stage, and got '': write"),
        ("'load", "%%uvm 'load: no closing quotation; write %%uvm etl, or %%uvm 'load data'"),
        ("etl --fault", "%%uvm has no option '--fault': --faults, --attribution"),
    ],
)
def test_name_that_cannot_be_is_refused_in_one_line_and_the_cell_is_not_run(
    run: Run, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    run(f"%%uvm {line}\nprint('ran')")
    captured = capsys.readouterr()
    told = (captured.out + captured.err).strip()
    assert told.startswith(f"UsageError: {said}")
    assert "\n" not in told


def test_report_shows_the_devices_of_all_calls(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.embed", None)
    for device in (0, 1):
        run(f"import rmm_uvm\nrmm_uvm.reinitialize('8MiB', '256MiB', {device}, libraries=())")
    capsys.readouterr()
    run("%uvm_report")
    told = capsys.readouterr().out
    assert re.findall(r"^device (\d): ", told, re.MULTILINE) == ["0", "1"]
    run("rmm_uvm.monitor(devices=1, publish=False).start()")  # watches nothing more
    capsys.readouterr()
    run("%uvm_report")
    assert len(re.findall(r"^device \d: ", capsys.readouterr().out, re.MULTILINE)) == 2
    for monitor in running():
        monitor.stop()
    rmm_uvm.restore()


def test_cell_that_fails_prints_its_traffic_and_fails(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run("%%uvm\nbroken = 1 / 0")

    assert isinstance(result.error_in_exec, ZeroDivisionError)
    out = capsys.readouterr().out
    assert out.index("uvm (simulated): ") < out.index("ZeroDivisionError")
    assert "jupyter.py" not in out
    assert not running()


def test_cell_with_a_syntax_error_is_not_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    result = run("%%uvm\nfoo((")

    assert isinstance(result.error_in_exec or result.error_before_exec, SyntaxError)
    assert "compilerop.py" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio\nawait asyncio.sleep(0)",
        "async with x:\n    pass",
        "[i async for i in x]",
    ],
)
def test_cell_that_awaits_is_refused_in_one_line(
    run: Run, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    result = run(f"%%uvm\n{text}")

    assert isinstance(result.error_in_exec, UsageError)
    captured = capsys.readouterr()
    assert "%%uvm cannot watch a cell with await" in captured.out + captured.err
    assert "Traceback" not in captured.out
    assert "uvm (simulated)" not in capsys.readouterr().out


def test_cell_with_faults_counts_them(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("%%uvm --faults\n1;")

    assert "0 GPU faults, 0 CPU faults" in capsys.readouterr().out


def test_cell_with_lines_names_its_own_line(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        "import rmm, rmm_uvm\nrmm_uvm.reinitialize(monitor=False)\n"
        "mr = rmm.mr.get_current_device_resource()\ndevice = mr.driver"
    )
    capsys.readouterr()
    run(
        "%%uvm --lines\n1\npart = rmm.DeviceBuffer(size=4 << 20)\n"
        "device.touch(part.ptr, part.size, write=True)\ndevice.cpu_touch(part.ptr, part.size);"
    )
    told = capsys.readouterr().out
    line = r"^1\. <ipython-input-[^>]*>:2: part = rmm\.DeviceBuffer\(size=4 << 20\)$"
    assert re.search(line, told, re.MULTILINE), told
    assert "read by the CPU 4.00 MiB" in told
    # A later cell knows that line, and tells of itself only.
    run("%%uvm --lines\ndevice.touch(part.ptr, part.size);")
    told = capsys.readouterr().out
    assert re.search(line, told, re.MULTILINE), told
    assert "came back 4.00 MiB\n" in told
    assert "read by the CPU" not in told
    run("%%uvm\n1;")
    assert "by line" not in capsys.readouterr().out
    run("del part; rmm_uvm.restore()")
    run("%unload_ext rmm_uvm")
    assert running() == ()


def test_options_beside_lines_are_of_their_cell_and_lines_go_on(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "import rmm, rmm_uvm\nrmm_uvm.reinitialize(monitor=False)\n"
        "mr = rmm.mr.get_current_device_resource()\ndevice = mr.driver"
    )
    run("%%uvm one --lines\npart = rmm.DeviceBuffer(size=4 << 20)")
    (kept,) = running()
    capsys.readouterr()
    run(
        "%%uvm two --lines --faults\ndevice.touch(part.ptr, part.size, write=True)\n"
        "device.cpu_touch(part.ptr, part.size);"
    )
    told = capsys.readouterr().out
    assert "read by the CPU 4.00 MiB" in told
    assert "part = rmm.DeviceBuffer(size=4 << 20)" in told
    assert "GPU faults" in told
    assert running() == (kept,)
    assert not kept.sources["faults"]
    run("%%uvm three\n1;")
    assert "GPU faults" not in capsys.readouterr().out
    run("del part; rmm_uvm.restore()")
    run("%unload_ext rmm_uvm")
    assert running() == ()


def test_first_cell_with_lines_and_faults_leaves_lines_only(run: Run) -> None:
    run("import rmm_uvm\nrmm_uvm.reinitialize(monitor=False)")
    run("%%uvm --lines --faults\n1;")
    (kept,) = running()
    assert kept.sources["lines"]
    assert not kept.sources["faults"]
    run("rmm_uvm.restore()")
    run("%unload_ext rmm_uvm")


@pytest.mark.parametrize("text", ["%%uvm --nonsense\n1", "%uvm_report now"])
def test_magic_with_unknown_options_is_one_line(
    text: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run(text)

    captured = capsys.readouterr()
    said = (captured.out + captured.err).strip()
    assert said.startswith("UsageError: %")
    assert "\n" not in said


def test_cell_without_gpu_runs_and_says_why_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "cuda")

    run("%%uvm\nprint('ran')")

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ran"
    assert len(lines) == 2
    assert re.match(r"uvm: [\d.]+ [mun]?s, memory could not be watched: ", lines[1])


def test_cell_with_the_off_switch_runs_and_says_why_it_was_not_watched(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM", "off")
    run("%%uvm --faults --attribution\n3 * 4")
    value, line = capsys.readouterr().out.strip().splitlines()
    assert value.endswith("12")
    assert line.endswith("memory could not be watched: switched off by RMM_UVM=off")
    run("%uvm_report")  # of the cell


def test_report_of_nothing_says_how_to_begin(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("%uvm_report")

    assert capsys.readouterr().out == (
        "no monitor runs: rmm_uvm.reinitialize() starts one, and %%uvm does for its cell\n"
    )


def test_report_after_a_cell_shows_its_timeline(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    run("%%uvm\n1;")

    run("%uvm_report")

    assert "<iframe" in shown[0].data


def test_report_without_bokeh_prints_the_summary(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("%%uvm\n1;")
    monkeypatch.setitem(sys.modules, "bokeh.embed", None)

    run("%uvm_report")

    out = capsys.readouterr().out
    assert "rmm_uvm: simulated: " in out
    assert "pip install 'rmm-uvm[report]'" in out


def test_unloaded_extension_has_no_magics(
    shell: InteractiveShell, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_line_magic("unload_ext", "rmm_uvm")

    run("%%uvm\n1")

    assert "not found" in capsys.readouterr().err
    rmm_uvm.unload_ipython_extension(shell)  # again is no error


def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *cells: str) -> list[Any]:
    """Run cells in a fresh kernel and return the outputs of the last."""
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, timeout=100, kernel_name="python3", resources=resources)
    asyncio.run(client.async_execute())
    return notebook.cells[-1].outputs


def test_magics_in_a_kernel_print_under_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = execute(
        tmp_path, monkeypatch, "%load_ext rmm_uvm", f"{SPILL}", f"%%uvm{THRASH}", "%uvm_report"
    )

    (shown,) = outputs
    assert "<iframe" in shown["data"]["text/html"]


def test_failing_cell_in_a_kernel_fails_the_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute(tmp_path, monkeypatch, "%load_ext rmm_uvm", "%%uvm\n1 / 0")

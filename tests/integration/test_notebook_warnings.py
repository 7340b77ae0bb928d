# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""In IPython and Jupyter a warning appears under the cell that runs, or under the next one."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

# The warnings of Jupyter's own libraries are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

SETUP = """
import threading
from rmm_uvm.watch.telling.delivery import Delivery
from rmm_uvm.recording.finding import Finding

def finding(message):
    return Finding("eviction", 0, 1.0, 2.0, 1.0, message, "use fewer")

def elsewhere(call, *arguments):
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()
"""


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))


def shell_output(code: str) -> str:
    """Run a program with a shell in it; return what it wrote, with stderr in its place."""
    begin = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.history_manager.enabled = False
def cell(code):
    shell.run_cell(code, store_history=False).raise_error()
"""
    result = subprocess.run(
        [sys.executable, "-P", "-u", "-c", SETUP + begin + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def test_warning_between_cells_waits_for_the_end_of_the_next_one() -> None:
    output = shell_output("""
delivery = Delivery()
cell("print('first')")
elsewhere(delivery.deliver, [finding("noticed")])
print("between")
cell("print('second')")
print("after")
delivery.close()
""")
    assert output.split("\n")[:3] == ["first", "between", "second"]
    assert output.index("second") < output.index("noticed") < output.index("after")
    assert output.count("noticed") == 1


def test_warning_while_a_cell_runs_is_shown_at_once_at_its_line() -> None:
    output = shell_output("""
delivery = Delivery()
shell.user_ns.update(delivery=delivery, finding=finding, elsewhere=elsewhere)
cell("elsewhere(delivery.deliver, [finding('noticed')]); print('going on')")
delivery.close()
""")
    assert output.index("noticed") < output.index("going on")


def test_exception_is_raised_in_the_cell_that_runs() -> None:
    output = shell_output("""
delivery = Delivery("raise")
shell.user_ns.update(delivery=delivery, finding=finding, elsewhere=elsewhere)
result = shell.run_cell("elsewhere(delivery.deliver, [finding('noticed')])")
print("raised", type(result.error_in_exec).__name__)
delivery.close()
""")
    assert "raised EvictionWarning" in output


def test_close_leaves_no_hook_and_shows_what_waits() -> None:
    output = shell_output("""
before = list(shell.events.callbacks["post_run_cell"])
delivery = Delivery()
elsewhere(delivery.deliver, [finding("noticed")])
print("waiting")
delivery.close()
print("closed", shell.events.callbacks["post_run_cell"] == before)
""")
    assert output.index("waiting") < output.index("noticed") < output.index("closed True")


def test_cell_that_ends_before_the_next_look_has_its_warning_under_it() -> None:
    output = shell_output("""
import time
import rmm_uvm
from rmm_uvm.watch import advisor
advisor._PAUSE_SECONDS = 3600.0  # no look but those where cells end
device = rmm_uvm.simulated_device("16MiB")
uvm = rmm_uvm.reinitialize("8MiB", "64MiB", driver=device, monitor={"interval_seconds": 0.002})
shell.user_ns.update(mr=uvm.managed_mr, monitor=uvm.monitor, time=time)
cell("before = len(monitor.samples()); held = mr.allocate(32 << 20)")
cell("while len(monitor.samples()) < before + 2: time.sleep(0.001)")
print("after")
rmm_uvm.restore()
""")
    assert output.index("OversubscriptionWarning") < output.index("after")


@pytest.mark.parametrize("on_finding", [None, "log"])
def test_other_deliveries_leave_the_shell_alone(on_finding: Any) -> None:
    output = shell_output(f"""
before = list(shell.events.callbacks["post_run_cell"])
delivery = Delivery({on_finding!r})
print(shell.events.callbacks["post_run_cell"] == before)
""")
    assert output == "True\n"


def test_kernel_shows_a_warning_under_the_cell_that_runs(tmp_path: Path) -> None:
    cells = [
        SETUP + "delivery = Delivery()",
        "elsewhere(delivery.deliver, [finding('noticed in two')])",
        # Between this cell and the next: the thread waits until the cell has ended.
        "ended = threading.Event()\n"
        "late = lambda: (ended.wait(), delivery.deliver([finding('noticed after three')]))\n"
        "thread = threading.Thread(target=late)\n"
        "thread.start()\n"
        "get_ipython().events.register('post_run_cell', lambda result: ended.set())",
        "thread.join()",
        "delivery.close()",
    ]
    notebook = new_notebook(cells=[new_code_cell(code) for code in cells])
    client = NotebookClient(
        notebook,
        timeout=90,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    asyncio.run(client.async_execute())  # execute() would leave its event loop open
    shown = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]
    assert [("noticed in two" in text, "noticed after three" in text) for text in shown] == [
        (False, False),
        (True, False),
        (False, False),
        (False, True),
        (False, False),
    ]
    cell = r"/ipykernel_\d+/\d+\.py:\d+: EvictionWarning: device 0: noticed in two; use fewer\n"
    assert re.search(cell, shown[1])
    assert shown[3] == "In[4]:1: EvictionWarning: device 0: noticed after three; use fewer\n"

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A warning names a line of the user's program, however that runs and wherever it has come to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rmm_uvm

INSTALL = """
import time, threading, rmm, rmm_uvm
from rmm_uvm.watch.monitor import running
from rmm_uvm.watch.telling.delivery import subscribe
found = []
subscribe(lambda finding: found.append(finding) if finding.kind == "footprint" else None)
def wait_for_findings():
    "Wait until every monitor has found it, and then for the warnings."
    while len(found) < len(running()) or time.sleep(0.5): time.sleep(0.01)  # IN THE FUNCTION
"""
# Installed by the program; `# NAMED` is the line that the warning is to name.
AT_THE_END = (
    INSTALL
    + """
settings = {"driver": "simulated:64MiB", "device_budget": None, "libraries": ()}
uvm = rmm_uvm.reinitialize("16MiB", **settings)  # NAMED
data = rmm.DeviceBuffer(size=96 << 20)
"""
)
WHILE_IT_RUNS = AT_THE_END.replace("# NAMED", "").replace("# IN THE FUNCTION", "# NAMED") + (
    "wait_for_findings()\n"
)
IN_A_THREAD = (
    AT_THE_END.replace("# NAMED", "").replace("# IN THE FUNCTION", "# NAMED")
    + "threading.Thread(target=wait_for_findings).start()\n"  # the main thread ends before it
)
EXECUTED = AT_THE_END.replace("# NAMED", "") + (
    "text = '\\n\\n\\nwhile not found or time.sleep(0.5): time.sleep(0.01)'\n"
    "exec(compile(text, '<made>', 'exec'), {'found': found, 'time': time, '__name__': 'made'})\n"
)


def named_by(arguments: list[str], folder: Path) -> list[str]:
    """Return the places that a program's warnings of oversubscription name."""
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            **os.environ,
            "RMM_UVM_DRIVER": "simulated:64MiB",
            "RMM_UVM_DEVICE_BUDGET": "none",
            "XDG_RUNTIME_DIR": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = re.findall(r"^(.+:\d+): OversubscriptionWarning: ", ended.stderr, re.MULTILINE)
    assert found, ended.stderr
    return found


@pytest.mark.parametrize(
    "program",
    [AT_THE_END, WHILE_IT_RUNS, IN_A_THREAD],
    ids=["at the end", "while it runs", "in a thread"],
)
@pytest.mark.parametrize(
    "way",
    [
        ["program.py"],
        ["-m", "program"],
        ["-m", "rmm_uvm", "run", "program.py"],
        ["-m", "rmm_uvm", "run", "-m", "program"],
    ],
    ids=" ".join,
)
def test_warning_names_the_line_that_runs_or_that_installed(
    tmp_path: Path, program: str, way: list[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(program)
    lines = program.splitlines()
    (number,) = (i for i, text in enumerate(lines, 1) if text.endswith("# NAMED"))
    assert set(named_by(way, tmp_path)) == {f"{path}:{number}"}


def test_command_given_as_text_is_named_as_python_names_it(tmp_path: Path) -> None:
    number = AT_THE_END.splitlines().index(
        next(text for text in AT_THE_END.splitlines() if "# NAMED" in text)
    )
    assert named_by(["-c", AT_THE_END], tmp_path) == [f"<string>:{number + 1}"]


def test_package_behind_a_link_is_no_line_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(Path(rmm_uvm.__file__).parents[1], target_is_directory=True)
    monkeypatch.setenv("PYTHONPATH", str(link))
    (named,) = named_by(["-c", AT_THE_END], tmp_path)
    assert named.startswith("<string>:")


def test_executed_code_is_named_by_its_own_line(tmp_path: Path) -> None:
    assert named_by(["-c", EXECUTED], tmp_path) == ["<made>:4"]
    of_no_module = EXECUTED.replace(", '__name__': 'made'", "")
    number = of_no_module.count("\n")
    assert named_by(["-c", of_no_module], tmp_path) == [f"<string>:{number}"]


def test_dask_worker_names_the_line_of_the_task(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "tasks.py").write_text(
        INSTALL.replace("# IN THE FUNCTION", "# NAMED")
        + """
def task():
    data = rmm.DeviceBuffer(size=96 << 20)
    wait_for_findings()
"""
    )
    (tmp_path / "program.py").write_text("""
import rmm_uvm.dask, tasks
from distributed import Client
if __name__ == "__main__":
    options = {"n_workers": 1, "simulated": "64MiB", "dashboard_address": None}
    with rmm_uvm.dask.local_cluster(**options) as cluster, Client(cluster) as client:
        client.submit(tasks.task).result()
""")
    # Dask's own client warns of what its scheduler tells it.
    named = [each for each in named_by(["program.py"], tmp_path) if "/client.py:" not in each]
    assert [each.rpartition(":")[0] for each in named] == [str(tmp_path / "tasks.py")]


def test_client_that_is_warned_by_its_own_event_loop_names_the_line_that_waits(
    tmp_path: Path,
) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "tasks.py").write_text("""
def task():
    import rmm, time
    data = rmm.DeviceBuffer(size=96 << 20)
    time.sleep(2)
""")
    program = """
import time, warnings
import rmm_uvm.dask, tasks
from distributed import Client, LocalCluster
told, show = [], warnings.showwarning
def tell(message, category, *where):
    told.extend([category] if category is rmm_uvm.OversubscriptionWarning else [])
    show(message, category, *where)
if __name__ == "__main__":
    warnings.showwarning = tell
    options = {"n_workers": 1, "preload": ["rmm_uvm.dask"], "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        rmm_uvm.dask.warn_here(client)
        job = client.submit(tasks.task)
        while not told: time.sleep(0.01)  # NAMED
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    numbered = enumerate(program.splitlines(), 1)
    (number,) = (i for i, text in numbered if text.endswith("# NAMED"))
    assert f"{path}:{number}" in named_by(["program.py"], tmp_path)

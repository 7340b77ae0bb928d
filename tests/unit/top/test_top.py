# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm top``: errors, JSON, one table, and the live display on a terminal."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmm_uvm.cli.top import watch
from rmm_uvm.top.seams import PublishedDevice
from rmm_uvm.top.view import ProcessRow, View

from .fakes import GIB, FakeMachine, device
from .terminal import COMMAND, Terminal

PID = 2**22 + 1


def look(machine: FakeMachine, *pids: int, **changes: object) -> int:
    options: dict[str, object] = {"interval": 0.01, "faults": False, "once": True, "as_json": False}
    return watch(machine.seams(), pids, **{**options, **changes})  # type: ignore[arg-type]


# --- one look ----------------------------------------------------------------------------------


def test_json_has_a_stable_schema(capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine(memory=[device()])
    machine.process(PID, "solver", command="./solver -n 3", user="ann")
    assert look(machine, as_json=True) == 0
    plain = json.loads(capsys.readouterr().out)
    assert list(plain) == [
        "version",
        "time",
        "interval_seconds",
        "processes",
        "devices",
        "devices_reason",
        "harvest",
    ]
    [row] = plain["processes"]
    assert row == {
        "pid": PID,
        "name": "solver",
        "command": "./solver -n 3",
        "user": "ann",
        "source": "attached",
        "reason": "",
        "exited": False,
        "device_id": None,
        "simulated": False,
        "footprint_bytes": None,
        "resident_bytes": None,
        "capacity_bytes": None,
        "host_to_device_bytes": 0,
        "device_to_host_bytes": 0,
        "evicted_bytes_estimate": 0,
        "budget_bytes": None,
        "overshoot_bytes": None,
        "harvested_bytes": None,
        "peak_harvested_bytes": None,
        "given_back_bytes": None,
        "cpu_faults": None,
        "gpu_faults": None,
        "in_bytes_per_second": 0.0,
        "out_bytes_per_second": 0.0,
        "faults_per_second": None,
    }
    assert plain["devices"] == [
        {
            "index": 0,
            "name": "NVIDIA H200",
            "uuid": "GPU-0",
            "used_bytes": 12 * GIB,
            "free_bytes": 127 * GIB,
            "total_bytes": 139 * GIB,
        }
    ]
    assert plain["version"] == 1


def test_json_of_nothing_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert look(FakeMachine(no_devices="no NVML"), as_json=True) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["processes"], plain["devices"]) == ([], [])
    assert plain["devices_reason"] == "no NVML"


def test_view_as_json_never_holds_the_history() -> None:
    assert "history" not in View((ProcessRow(1, "a", history=((0.0, 1.0),)),)).to_dict()


def test_one_table_shows_processes_and_devices(capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine(memory=[device()])
    counters = machine.process(PID, "solver")
    machine.board = [PublishedDevice(PID + 1, "python3", 0, 1.0, {"footprint_bytes": 3 * GIB})]
    assert look(machine) == 0
    out = capsys.readouterr().out
    for expected in ("solver", "3.00 GiB", "GPU 0 NVIDIA H200: 12.0 GiB of 139 GiB"):
        assert expected in out
    assert "\x1b" not in out
    assert counters.closed == 1


def test_output_that_is_no_terminal_is_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine()
    machine.process(PID, "solver")
    assert look(machine, once=False) == 0
    assert capsys.readouterr().out.count("solver") == 1


def test_pids_that_cannot_be_watched_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine()
    counters = machine.process(PID)
    assert look(machine, PID, PID + 1, PID + 2) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        f"Error: process {PID + 1} does not use CUDA",
        f"Error: process {PID + 2} does not use CUDA",
    ]
    assert counters.closed == 1


# --- the command in a process of its own -------------------------------------------------------


def top(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_pid_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    done = top(tmp_path, str(PID))
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("Error: ")
    assert str(PID) in done.stderr
    assert done.stderr.count("\n") == 1


def test_pid_without_cuda_is_one_line(tmp_path: Path) -> None:
    done = top(tmp_path, str(os.getppid()))
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("word", ["0", "-3", "me"])
def test_pid_that_is_none_is_wrong_usage(tmp_path: Path, word: str) -> None:
    done = top(tmp_path, "--", word)
    assert done.returncode == 2
    assert f"'{word}' is no PID: a number such as 4242 is needed" in done.stderr


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_interval_that_is_no_number_is_wrong_usage(tmp_path: Path, number: str) -> None:
    assert top(tmp_path, "--interval", number).returncode == 2


PUBLISHES = """
import sys, time, rmm_uvm
rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", libraries=(), monitor=False)
import rmm
mr = rmm.mr.get_per_device_resource(0)
pointer = mr.allocate(40 << 20)
from rmm_uvm.watch.monitor import Monitor
with Monitor(on_finding=None):
    print("publishes", flush=True)
    sys.stdin.read()
mr.deallocate(pointer, 40 << 20)
"""


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process on a simulated device that publishes its figures."""
    with subprocess.Popen(
        [sys.executable, "-c", PUBLISHES],
        cwd=tmp_path,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "publishes\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def wait_for_board(folder: Path) -> None:
    while not list(folder.glob("rmm-uvm/*.json")):
        pass


def test_process_that_publishes_is_seen_with_its_footprint(
    tmp_path: Path, publisher: subprocess.Popen[str]
) -> None:
    wait_for_board(tmp_path)
    for words in ([], [str(publisher.pid)]):
        done = top(tmp_path, "--json", "--interval", "0.1", *words)
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)["processes"]  # others of this user may publish elsewhere
        [row] = [row for row in rows if row["pid"] == publisher.pid]
        assert row["source"] == "published"
        assert row["footprint_bytes"] == 40 << 20
        assert row["capacity_bytes"] == 64 << 20
        assert row["simulated"] is True
        assert row["user"] == pwd.getpwuid(os.getuid()).pw_name
    assert f"simulated, no GPU of this machine: PID {publisher.pid}\n" in (
        top(tmp_path, "--once", "--interval", "0.1", str(publisher.pid)).stdout
    )


# --- on a terminal -----------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["q", "\x03"])
def test_live_display_leaves_with_a_key(
    tmp_path: Path, publisher: subprocess.Popen[str], key: str
) -> None:
    wait_for_board(tmp_path)
    terminal = Terminal(tmp_path, "--interval", "0.1")
    terminal.read_until("q quits")
    terminal.read_until(str(publisher.pid))
    terminal.write(key)
    assert terminal.end() == 0
    assert "\x1b[?1049h" in terminal.output
    last = terminal.output.rpartition("\x1b[?1049l")[2]
    assert str(publisher.pid) in last  # the last table stays


def test_live_display_ends_with_the_process_that_was_named(
    tmp_path: Path, publisher: subprocess.Popen[str]
) -> None:
    wait_for_board(tmp_path)
    terminal = Terminal(tmp_path, "--interval", "0.1", str(publisher.pid))
    terminal.read_until("q quits")
    assert publisher.stdin is not None
    publisher.stdin.close()
    publisher.wait(timeout=30)
    assert terminal.end() == 0
    assert f"{publisher.pid}" in terminal.output.rpartition("\x1b[?1049l")[2]


def test_terminal_without_colour_has_none(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--once", "--interval", "0.1", NO_COLOR="1")
    assert terminal.end() == 0
    assert "\x1b[3" not in terminal.output


def test_terminal_that_is_dumb_gets_one_table(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--interval", "0.1", TERM="dumb")
    assert terminal.end() == 0
    assert "\x1b" not in terminal.output
    assert "rmm-uvm top" in terminal.output

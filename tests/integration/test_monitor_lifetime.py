# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that end while they watch, in every way there is: no hang, no crash, no noise."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rmm_uvm.watch.telling.board import read_board

START = """
import atexit, gc, multiprocessing, os, sys, threading, time, warnings
import rmm_uvm
from rmm_uvm.watch.monitor import running

def watch(**keywords):
    return rmm_uvm.monitor(driver="simulated:64MiB", interval_seconds=0.005, **keywords).start()
"""


def run(source: str, runtime: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that watches; its board lies in `runtime`."""
    return subprocess.run(
        [sys.executable, "-P", "-X", "faulthandler", "-c", START + textwrap.dedent(source)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "RMM_UVM_DRIVER": "simulated:64MiB"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("source", "status", "error"),
    [
        ("m = watch()", 0, ""),
        ("watch()", 0, ""),
        ("m = watch(); del m; gc.collect(); print(len(running()))", 0, ""),
        ("m = watch(); m.stop(); m.stop()", 0, ""),
        ("m = watch(); sys.exit(3)", 3, ""),
        ("m = watch(); os._exit(4)", 4, ""),
        ("m = watch(); raise ValueError('mine')", 1, "ValueError: mine"),
        ("m = watch(); raise KeyboardInterrupt", -2, "KeyboardInterrupt"),
        ("m, n = watch(), watch(publish=False)", 0, ""),
        ("m = watch(on_finding='raise'); m.me = m; del m", 0, ""),
        ("t = threading.Thread(target=sys.exit); m = watch(); t.start(); t.join()", 0, ""),
        ("threading.Thread(target=lambda: (watch(), time.sleep(0.2))).start()", 0, ""),
        ("m = watch(); atexit.register(lambda: print(m.running, m.snapshot().time_ns > 0))", 0, ""),
        ("u = rmm_uvm.reinitialize('8MiB', libraries=())", 0, ""),
        ("u = rmm_uvm.reinitialize('8MiB', libraries=()); m = watch(); sys.exit(5)", 5, ""),
        ("m = watch(); threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", 0, ""),
        ("m = watch(faults=True, attribution=True)", 0, ""),
    ],
)
def test_process_that_ends_while_watching_ends_as_without(
    source: str, status: int, error: str, tmp_path: Path
) -> None:
    done = run(source, tmp_path)

    assert done.returncode == status, done.stderr
    assert (done.stderr.strip().splitlines() or [""])[-1] == error, done.stderr
    assert read_board([tmp_path / "rmm-uvm"]) == []  # others of this user may publish elsewhere


CHILD = """
    m = watch()
    m._tick()
    before = len(m.samples())
    pid = os.fork()
    if pid == 0:
        ok = not m.running and running() == () and len(m.samples()) >= before
        m.stop()
        with rmm_uvm.stage("child"):
            pass
        n = watch(on_finding=None, publish=False)
        ok = ok and n.running and n.snapshot().device_used_bytes == 0
        n.stop()
        {end}
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert m.running
    with rmm_uvm.stage("parent"):
        n = len(m.samples())
        while len(m.samples()) < n + 3:
            time.sleep(0.005)
    m.stop()
    print(status, [stage.name for stage in m.recording().stages])
"""


@pytest.mark.parametrize("end", ["os._exit(0 if ok else 9)", "sys.exit(0 if ok else 9)"])
def test_fork_stops_the_monitor_in_the_child_and_not_in_the_parent(
    end: str, tmp_path: Path
) -> None:
    done = run(CHILD.format(end=end), tmp_path)

    assert done.stdout == "0 ['parent']\n", done.stdout + done.stderr
    assert (done.returncode, done.stderr) == (0, "")


def test_child_of_multiprocessing_fork_leaves_the_board_alone(tmp_path: Path) -> None:
    done = run(
        """
        from rmm_uvm.watch.telling.board import board_directories, read_board

        def published():  # others of this user may publish in the second directory
            return len(read_board(board_directories()[:1]))

        def child(results):
            results.put((len(running()), published()))

        m = watch()
        m._tick()
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        process = context.Process(target=child, args=(results,))
        process.start()
        print(results.get(), end=" ")
        process.join()
        print(process.exitcode, published(), m.running)
        """,
        tmp_path,
    )

    assert done.stdout == "(0, 1) 0 1 True\n", done.stdout + done.stderr
    assert (done.returncode, done.stderr) == (0, "")


def test_fork_while_threads_watch_and_read_never_hangs(tmp_path: Path) -> None:
    done = run(
        """
        u = rmm_uvm.reinitialize("8MiB", libraries=(), monitor={"interval_seconds": 0.001})
        stop = threading.Event()
        def read():
            while not stop.is_set():
                u.monitor.snapshot()
                u.monitor._tick()
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            pid = os.fork()
            if pid == 0:
                u.monitor.stop()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
        rmm_uvm.restore()
        print("whole")
        """,
        tmp_path,
    )

    assert done.stdout == "whole\n", done.stdout + done.stderr


def test_exit_shows_the_warning_that_was_not_shown_yet(tmp_path: Path) -> None:
    done = run(
        """
        device = rmm_uvm.simulated_device("64MiB")
        mr = rmm_uvm.mr.ManagedMemoryResource(device)
        pointers = [mr.allocate(32 << 20) for _ in range(3)]
        m = rmm_uvm.monitor(driver=device)
        m.start()
        for _ in range(6):
            for pointer in pointers:
                device.touch(pointer, 32 << 20, write=True)
            m._session._samples.sample_now()
            time.sleep(0.01)
        """,
        tmp_path,
    )

    assert done.returncode == 0
    assert "Warning: device 0" in done.stderr, done.stderr


def test_reading_from_many_threads_while_it_stops_and_starts(tmp_path: Path) -> None:
    done = run(
        """
        m = watch(on_finding=None)
        stop = threading.Event()
        errors = []
        def read():
            while not stop.is_set():
                try:
                    m.snapshot(); m.window(); m.samples(); m.recording(); m.findings; m.sources
                except Exception as error:
                    errors.append(repr(error))
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            m.stop()
            m.start()
        stop.set()
        for thread in threads:
            thread.join()
        m.stop()
        print(errors[:3])
        """,
        tmp_path,
    )

    assert done.stdout == "[]\n", done.stdout + done.stderr
    assert done.returncode == 0

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Stopping a monitor from anywhere, at any time: callbacks, collections, the interpreter's exit."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rmm_uvm._lib.monitor import FakeClock
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.watch.monitor import Monitor
from rmm_uvm.watch.session import Session

# A program whose callback does something, once, in the advisor's thread.
_PROGRAM = """
import sys, threading
import rmm, rmm_uvm
device = rmm_uvm.simulated_device("64MiB")
pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
rmm.mr.set_per_device_resource(0, pool)
called = threading.Event()
def on_finding(finding):
    if threading.current_thread() is threading.main_thread() or called.is_set():
        return
    called.set()
    {callback}
m = rmm_uvm.monitor(driver=device, on_finding=on_finding, publish=False, trace=sys.argv[1])
m.start()
pointer = pool.allocate(128 << 20)
assert called.wait(30)
{main}
"""

# Main is at its end before this one is.
_SLOW_STOP = "m._session._opened.callback(threading.Event().wait, 0.5); m.stop()"


def _run(path: Path, callback: str, main: str = "") -> None:
    program = _PROGRAM.format(callback=callback, main=main)
    subprocess.run([sys.executable, "-P", "-c", program, str(path)], check=True, timeout=60)


@pytest.mark.parametrize(
    ("callback", "main"), [(_SLOW_STOP, "m.stop()"), (_SLOW_STOP, ""), ("pass", "del m")]
)
def test_program_that_ends_meanwhile_leaves_a_whole_trace(
    tmp_path: Path, callback: str, main: str
) -> None:
    import rmm_uvm.trace

    _run(tmp_path / "a.trace", callback, main)

    assert not rmm_uvm.trace.read(tmp_path / "a.trace").truncated


def test_callback_that_blocks_does_not_keep_the_interpreter(tmp_path: Path) -> None:
    import rmm_uvm.trace

    _run(tmp_path / "a.trace", "threading.Event().wait()")

    assert not rmm_uvm.trace.read(tmp_path / "a.trace").truncated


def _started(device: SimulatedDevice, **keywords: object) -> Monitor:
    m = Monitor(driver=device, on_finding=None, publish=False, **keywords)  # type: ignore[arg-type]
    m._clock = FakeClock()
    return m.start()


def _session(m: Monitor) -> Session:
    assert m._session is not None
    return m._session


def test_second_stop_waits_for_the_first(device: SimulatedDevice) -> None:
    m = _started(device)
    first_is_in, go_on = threading.Event(), threading.Event()
    _session(m)._opened.callback(lambda: (first_is_in.set(), go_on.wait(30)))
    first = threading.Thread(target=m.stop)
    first.start()
    assert first_is_in.wait(30)
    second = threading.Thread(target=m.stop)
    second.start()
    second.join(0.05)
    assert second.is_alive()
    go_on.set()
    first.join(30)
    second.join(30)
    assert not second.is_alive()


def test_callback_that_stops_while_another_thread_does_is_not_waited_for_in_turn(
    device: SimulatedDevice,
) -> None:
    m = _started(device)
    advisor = _session(m)._advisor
    asked = threading.Event()
    advisor._on_round = (lambda: (advisor._stopping.wait(30), m.stop(), asked.set()),)
    m.stop()
    assert asked.is_set()


def test_monitor_dropped_while_its_advisor_waits_for_a_lock_of_this_thread_goes_on(
    device: SimulatedDevice,
) -> None:
    m = _started(device)
    session, threads = _session(m), set(threading.enumerate())
    lock, waiting = threading.Lock(), threading.Event()

    def log() -> None:
        waiting.set()
        with lock:
            pass

    session._advisor._on_round = (log,)
    with lock:  # as a logging handler has it
        assert waiting.wait(30)
        del m
    for late in set(threading.enumerate()) - threads:
        late.join(30)
    assert not session.running

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a simulated kernel goes on: a real signal, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from rmm_uvm.simulator import Access, Simulator, load_machine, random_pages

MIB = 1 << 20
TIMEOUT_SECONDS = 120

# Signals that come before the kernel runs, or after it, are answered by "early": send another.
CHILD = """
import os, signal
from rmm_uvm.simulator import Access, Simulator, load_machine, random_pages

def say(*words):  # not print: a signal may come while it is at work, and say something too
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")

def handler(number, frame):
    if frame.f_code.co_name != "kernel":
        say("early")
        return
    raise {error}("stop")

signal.signal(signal.SIGINT, handler)
simulator = Simulator(load_machine("h200-pcie5"), device_bytes="{device_mib}MiB")
data = simulator.allocate_managed("64MiB")
say("ready")
try:
    simulator.kernel([Access(data, "64MiB", random_pages(10**15))])
except {error} as stopped:
    before = simulator.counters().block_operations
    simulator.kernel([Access(data, "64MiB")])
    say("stopped:", stopped, simulator.counters().block_operations > before)
"""


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "ValueError"])
@pytest.mark.parametrize("device_mib", [128, 32])  # hits only; faults and evictions
def test_interrupt_of_a_long_kernel_ends_it_and_the_simulator_goes_on(
    error: str, device_mib: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD.format(error=error, device_mib=device_mib)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        guard = threading.Timer(TIMEOUT_SECONDS, child.kill)
        guard.start()
        assert child.stdout is not None
        assert child.stderr is not None
        lines = []
        for line in child.stdout:
            lines.append(line.strip())
            if lines[-1] in ("ready", "early"):
                time.sleep(0.01)  # the last one is answered first: a handler may interrupt itself
                child.send_signal(signal.SIGINT)
        errors = child.stderr.read()
        guard.cancel()
        guard.join()

    assert (lines[-1], errors) == ("stopped: stop True", "")
    assert child.returncode == 0


def test_kernel_in_another_thread_is_not_interrupted() -> None:
    simulator = Simulator(load_machine("h200-pcie5"), device_bytes="128MiB")
    data = simulator.allocate_managed("64MiB")
    pattern = random_pages(200_000)
    thread = threading.Thread(target=simulator.kernel, args=([Access(data, 64 * MIB, pattern)],))
    thread.start()
    thread.join()
    assert simulator.counters().block_operations >= 100_000

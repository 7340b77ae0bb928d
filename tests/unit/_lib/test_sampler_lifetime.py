# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The sampler at the end of things: dropped objects, exits, forks; and the memory it takes."""

from __future__ import annotations

import gc
import subprocess
import sys

import rmm_uvm
from rmm_uvm._lib.monitor import Sampler, Slot

from ...named_threads import SAMPLER, threads_ended, threads_named


def test_sampler_that_is_dropped_stops_its_thread() -> None:
    sampler = Sampler([Slot(0, rmm_uvm.simulated_device("64MiB"))])
    sampler.start()
    assert threads_named(SAMPLER) == 1
    del sampler
    gc.collect()
    assert threads_ended(SAMPLER)


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


PRELUDE = """
import os, sys, gc, rmm_uvm
from rmm_uvm._lib.monitor import FakeClock, Sampler, Slot
device = rmm_uvm.simulated_device("64MiB")
sampler = Sampler([Slot(0, device)], 1_000_000)
sampler.start()
sampler.wait()
"""


def test_interpreter_that_exits_with_a_running_sampler_ends_well() -> None:
    result = run_python(PRELUDE + "print('end')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")


def test_forked_child_reads_and_stops_without_hanging() -> None:
    result = run_python(
        PRELUDE
        + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads: ours is one
for _ in range(50):
    before = sampler.next_sequence
    pid = os.fork()
    if pid == 0:
        device.memory()
        samples, following, lost = sampler.samples()
        ok = len(samples) >= before and not sampler.running and not sampler.sample_now()
        ok = ok and not sampler.wait(0.01) and os.fork() >= 0
        try:
            sampler.start()
            ok = False
        except RuntimeError as error:
            ok = ok and "made before a fork" in str(error)
        sampler.stop()
        own = Sampler([Slot(0, device)], 1_000_000)
        own.start()
        ok = ok and own.wait(30)
        own.stop()
        del sampler
        gc.collect()
        os._exit(0 if ok else 1)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
    assert sampler.wait(30)
print('end')
"""
    )
    assert (result.returncode, result.stdout) == (0, "end\n"), result.stderr


def test_ring_of_a_day_at_one_sample_a_second_takes_less_than_ten_mebibytes() -> None:
    result = run_python(
        """
import re, rmm_uvm
from pathlib import Path
from rmm_uvm._lib.monitor import FakeClock, Sampler, Slot

def resident_bytes():
    found = re.search(r"VmRSS:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10

device = rmm_uvm.simulated_device("64MiB")
before = resident_bytes()
sampler = Sampler([Slot(0, device)], 1_000_000_000, 86_400, FakeClock())
for _ in range(86_500):
    sampler.sample_now()
print(resident_bytes() - before < 10 << 20, sampler.next_sequence)
"""
    )
    assert result.stdout == "True 86500\n", result.stderr

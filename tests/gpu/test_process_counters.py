# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Counters of another process, held against what that process counts itself; and faults."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import cupy
import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.mr import ManagedMemoryResource
from rmm_uvm.watch.sampling.nvml import gpu_memory
from rmm_uvm.watch.sampling.process import attach, cuda_processes

pytestmark = pytest.mark.gpu

BYTES = 64 << 20

# Moves memory as it is told to, line by line; knows nothing of being watched.
PROGRAM = f"""
import ctypes, sys
import rmm_uvm
from rmm_uvm.mr import ManagedMemoryResource

driver = rmm_uvm.cuda_driver(0)
mr = ManagedMemoryResource(driver, prefetch="never")
address = mr.allocate({BYTES})
ctypes.memset(address, 1, {BYTES})
before = driver.migrated_bytes()
print(before, flush=True)
for line in sys.stdin:
    if line.strip() == "cpu":
        ctypes.memset(address, 2, {BYTES})
    else:
        driver.prefetch(address, {BYTES}, line.strip())
    driver.synchronize()
    now = driver.migrated_bytes()
    print(now[0] - before[0], now[1] - before[1], flush=True)
"""


@contextmanager
def moving_process() -> Iterator[tuple[int, Callable[[str], tuple[int, int]]]]:
    """Run the program; yield its PID and what asks it to move and returns its own totals."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline()

        def ask(what: str) -> tuple[int, int]:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(f"{what}\n")
            child.stdin.flush()
            to_device, to_host = child.stdout.readline().split()
            return int(to_device), int(to_host)

        yield child.pid, ask
        child.stdin.close()


def test_attached_counters_of_one_gpu_and_of_all_agree_with_the_process(gpu: CudaDriver) -> None:
    with (
        moving_process() as (pid, ask),
        attach(pid, gpu.info.uuid, faults=True) as counters,
        attach(pid) as all_processors,
    ):
        assert pid in [one.pid for one in cuda_processes() if one.attachable]
        for what in ("device", "host", "device", "cpu", "device"):
            own = ask(what)
            for each in (counters, all_processors):
                totals = each.read()
                assert (totals["host_to_device_bytes"], totals["device_to_host_bytes"]) == own
        assert own == (3 * BYTES, 2 * BYTES)
        assert counters.read()["cpu_faults"] > 0
        assert all_processors.read()["cpu_faults"] == 0


def test_own_faults_are_counted_while_asked_for() -> None:
    gpu = rmm_uvm.cuda_driver(0)  # its own: a driver keeps its tracker of faults until it goes
    mr = ManagedMemoryResource(gpu, prefetch="never")
    buffer = rmm.DeviceBuffer(size=BYTES, mr=mr)
    array = cupy.asarray(buffer).view(cupy.uint8)
    array.fill(1)
    gpu.prefetch(buffer.ptr, BYTES, "host")
    gpu.synchronize()
    before = gpu.fault_counts()
    assert gpu.request_faults()
    array.fill(2)
    cupy.cuda.Device().synchronize()
    counted = gpu.fault_counts()
    assert counted[1] > before[1]
    gpu.release_faults()
    gpu.prefetch(buffer.ptr, BYTES, "host")
    gpu.synchronize()
    array.fill(3)
    cupy.cuda.Device().synchronize()
    assert gpu.fault_counts() == counted


def test_nvml_knows_the_device_of_the_driver(gpu: CudaDriver) -> None:
    (found,) = (one for one in gpu_memory() if one.uuid == gpu.info.uuid)
    assert found.total_bytes is not None
    assert found.total_bytes >= gpu.info.total_bytes
    assert found.used_bytes is not None
    assert found.used_bytes > 0

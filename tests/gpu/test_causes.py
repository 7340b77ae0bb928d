# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Causes as CUPTI tells them, held against the kernel counters; and CUPTI shared with others."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import cupy
import pytest

import rmm_uvm
from rmm_uvm._lib.events import MigrationEvents
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.watch.sampling.attribution import open_events

from .test_watching import touch_by_cpu, touch_by_gpu

pytestmark = pytest.mark.gpu

MIB = 1 << 20
SIZE = 32 * MIB
FAULTS = ("coherence", "prefetch")  # a fault brings neighbours that the kernel driver speculates on


def opened(driver: CudaDriver) -> MigrationEvents:
    events, found = open_events(driver)
    assert events is not None, found.reason
    return events


def watched(driver: CudaDriver, work: Callable[[], None]) -> tuple[MigrationEvents, list[int]]:
    """Do some work under attribution; return the stopped events, and what the counters say."""
    events = opened(driver)
    started = events.start()
    assert started, started.reason
    before = driver.migrated_bytes()
    work()
    cupy.cuda.Device().synchronize()
    after = driver.migrated_bytes()
    events.stop()
    return events, [after[0] - before[0], after[1] - before[1]]


def run_python(source: str, **environment: str) -> str:
    """Run a program of its own with little managed memory; return what it printed."""
    result = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(source)],
        env={**os.environ, "RMM_UVM_MANAGED_LIMIT": "256MiB", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def managed(gpu: CudaDriver) -> rmm_uvm.mr.ManagedMemoryResource:
    return rmm_uvm.mr.ManagedMemoryResource(gpu, prefetch="never")


def test_prefetch_is_user_to_the_byte(
    gpu: CudaDriver, managed: rmm_uvm.mr.ManagedMemoryResource
) -> None:
    address = managed.allocate(SIZE)
    touch_by_cpu(address, SIZE)  # populates, moves nothing

    def work() -> None:
        gpu.prefetch(address, SIZE, "device")
        gpu.prefetch(address, SIZE // 2, "host")
        gpu.synchronize()

    events, counted = watched(gpu, work)
    managed.deallocate(address, SIZE)
    totals = events.read()
    assert counted == [SIZE, SIZE // 2]
    assert totals["host_to_device_bytes"]["user"] == sum(totals["host_to_device_bytes"].values())
    assert totals["host_to_device_bytes"]["user"] == SIZE
    assert totals["device_to_host_bytes"]["user"] == SIZE // 2
    assert totals["dropped_records"] == 0


def test_faults_are_coherence_and_sums_are_the_kernel_counters(
    gpu: CudaDriver, managed: rmm_uvm.mr.ManagedMemoryResource
) -> None:
    address = managed.allocate(SIZE)
    touch_by_cpu(address, SIZE)

    def work() -> None:
        touch_by_gpu(address, SIZE)
        touch_by_cpu(address, SIZE // 2)
        gpu.prefetch(address, SIZE, "device")
        gpu.synchronize()

    events, counted = watched(gpu, work)
    managed.deallocate(address, SIZE)
    totals = events.read()
    there, back = totals["host_to_device_bytes"], totals["device_to_host_bytes"]
    assert [sum(there.values()), sum(back.values())] == counted
    assert back["coherence"] > 0
    assert there["coherence"] > 0
    assert sum(back[cause] for cause in FAULTS) == SIZE // 2
    assert sum(there[cause] for cause in FAULTS) == SIZE
    assert there["user"] == SIZE // 2
    assert back["eviction"] == 0
    assert totals["gpu_fault_groups"] > 0
    assert totals["cpu_faults"] > 0
    blocks = events.busiest(1000)
    assert {block[0] for block in blocks} <= set(range(address, address + SIZE, 2 * MIB))
    assert [sum(block[1] for block in blocks), sum(block[2] for block in blocks)] == counted


def test_two_who_watch_one_device_have_sums_of_their_own(
    gpu: CudaDriver, managed: rmm_uvm.mr.ManagedMemoryResource
) -> None:
    address = managed.allocate(SIZE)
    touch_by_cpu(address, SIZE)
    late = opened(gpu)

    def work() -> None:
        gpu.prefetch(address, SIZE, "device")
        gpu.synchronize()
        assert late.start()
        gpu.prefetch(address, SIZE, "host")
        gpu.synchronize()

    events, counted = watched(gpu, work)
    late.stop()
    managed.deallocate(address, SIZE)
    assert sum(events.read()["host_to_device_bytes"].values()) == counted[0] == SIZE
    assert late.read()["device_to_host_bytes"]["user"] == SIZE


def test_after_the_stop_everything_works_and_it_starts_again(
    gpu: CudaDriver, managed: rmm_uvm.mr.ManagedMemoryResource
) -> None:
    address = managed.allocate(SIZE)

    def bounce() -> None:
        touch_by_cpu(address, SIZE)
        touch_by_gpu(address, SIZE)

    events, _ = watched(gpu, bounce)
    totals = events.read()
    before = gpu.migrated_bytes()
    bounce()
    after = gpu.migrated_bytes()
    assert [after[0] - before[0], after[1] - before[1]] == [SIZE, SIZE]
    assert events.read() == totals
    assert events.start()
    assert sum(events.read()["host_to_device_bytes"].values()) == 0
    bounce()
    events.stop()
    assert sum(events.read()["host_to_device_bytes"].values()) == SIZE
    managed.deallocate(address, SIZE)


# A client of CUPTI in the same process, as torch.profiler is one.
_OTHER_CLIENT = """
    import ctypes
    import rmm_uvm
    from rmm_uvm.machine.cupti_library import find_cupti
    from rmm_uvm.watch.sampling.attribution import open_events

    cupti = ctypes.CDLL(find_cupti()[0])
    function = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p
    )(lambda *_: None)
    other = ctypes.c_void_p()
    subscribe = lambda: cupti.cuptiSubscribe(ctypes.byref(other), function, None)
    events, found = open_events(rmm_uvm.cuda_driver(0))
    assert events is not None, found.reason
"""


def test_other_client_of_cupti_is_a_reason_until_it_ends() -> None:
    out = run_python(
        _OTHER_CLIENT
        + """
    assert subscribe() == 0
    refused = events.start()
    assert cupti.cuptiUnsubscribe(other) == 0
    started = events.start()
    events.stop()
    print(refused.available, "another profiler holds CUPTI" in refused.reason, started.available)
    print(refused.reason)
    """
    )
    # A CUPTI that serves several clients (13.3, with a driver of its own age) may tolerate it.
    assert out.splitlines()[0] in ("False True True", "True False True"), out


def test_other_client_is_kept_out_while_we_watch_and_not_after() -> None:
    out = run_python(
        _OTHER_CLIENT
        + """
    assert events.start()
    meanwhile = subscribe()
    if meanwhile == 0:
        cupti.cuptiUnsubscribe(other)
    events.stop()
    print(meanwhile, subscribe())
    """
    )
    assert out.split() in (["39", "0"], ["0", "0"]), out


def test_devices_are_told_apart_however_they_are_numbered() -> None:
    count = cupy.cuda.runtime.getDeviceCount()
    orders = ["0"] if count == 1 else ["0,1", "1,0", "1"]
    for visible in orders:
        out = run_python(
            """
            import ctypes
            import os
            import rmm_uvm
            from rmm_uvm.watch.sampling.attribution import open_events

            def prefetched(driver, mr, nbytes):
                address = mr.allocate(nbytes)
                ctypes.memset(address, 1, nbytes)
                driver.prefetch(address, nbytes)
                driver.synchronize()
                mr.deallocate(address, nbytes)

            count = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
            drivers = [rmm_uvm.cuda_driver(n) for n in range(count)]
            pools = [rmm_uvm.mr.ManagedMemoryResource(d, prefetch="never") for d in drivers]
            watching = [open_events(d)[0] for d in drivers]
            for events in watching:
                started = events.start()
                assert started, started.reason
            for n, (driver, mr) in enumerate(zip(drivers, pools)):
                prefetched(driver, mr, (n + 1) * 8 << 20)
            for events in watching:
                events.stop()
            print(*(events.read()["host_to_device_bytes"]["user"] >> 20 for events in watching))
            """,
            CUDA_VISIBLE_DEVICES=visible,
        )
        assert out.split() == ["8", "16"][: visible.count(",") + 1], (visible, out)

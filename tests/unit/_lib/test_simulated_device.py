# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated device as Python sees it: residence, counters, and injected failures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.events import simulated_events
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import DriverError
from rmm_uvm.mr import ManagedAccount, ManagedMemoryResource, SimulatedCudaMemoryResource

MIB = 1 << 20
CPP = Path(__file__).resolve().parents[3] / "cpp"


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("16MiB")


def managed(device: SimulatedDevice) -> ManagedMemoryResource:
    return ManagedMemoryResource(device, prefetch="never", account=ManagedAccount())


def test_new_managed_memory_is_nowhere_until_touched(device: SimulatedDevice) -> None:
    mr = managed(device)
    pointer = mr.allocate(4 * MIB)
    assert device.resident_bytes(pointer, 4 * MIB) == 0
    device.touch(pointer, 2 * MIB, write=True)
    assert device.resident_bytes(pointer, 4 * MIB) == 2 * MIB
    assert device.migrated_bytes() == (0, 0)  # there was nothing to copy
    mr.deallocate(pointer, 4 * MIB)
    assert device.memory() == (16 * MIB, 16 * MIB)


def test_prefetch_there_and_back_counts_bytes_each_way(device: SimulatedDevice) -> None:
    mr = managed(device)
    pointer = mr.allocate(4 * MIB)
    device.cpu_touch(pointer, 4 * MIB, write=True)
    device.prefetch(pointer, 4 * MIB)
    device.prefetch(pointer, 4 * MIB, where="host")
    assert device.migrated_bytes() == (4 * MIB, 4 * MIB)
    mr.deallocate(pointer, 4 * MIB)


def test_touching_more_than_fits_evicts_the_first_in(device: SimulatedDevice) -> None:
    mr = managed(device)
    first, second = mr.allocate(10 * MIB), mr.allocate(10 * MIB)
    device.touch(first, 10 * MIB, write=True)
    device.touch(second, 10 * MIB, write=True)
    assert device.resident_bytes(first, 4 * MIB) == 0
    assert device.resident_bytes(first, 10 * MIB) == 6 * MIB
    assert device.statistics()["evicted_bytes"] == 4 * MIB
    mr.deallocate(first, 10 * MIB)
    mr.deallocate(second, 10 * MIB)


def test_cuda_malloc_evicts_managed_memory_and_is_never_evicted(device: SimulatedDevice) -> None:
    mr, cuda = managed(device), SimulatedCudaMemoryResource(device)
    pointer = mr.allocate(16 * MIB)
    device.touch(pointer, 16 * MIB, write=True)
    fixed = cuda.allocate(10 * MIB)
    assert device.statistics()["evicted_bytes"] == 10 * MIB
    with pytest.raises(MemoryError):
        cuda.allocate(7 * MIB)
    cuda.deallocate(fixed, 10 * MIB)
    mr.deallocate(pointer, 16 * MIB)


def test_discard_and_prefetch_copies_nothing(device: SimulatedDevice) -> None:
    mr = managed(device)
    pointer = mr.allocate(4 * MIB)
    device.cpu_touch(pointer, 4 * MIB, write=True)
    device.discard_and_prefetch(pointer, 4 * MIB)
    assert device.migrated_bytes() == (0, 0)
    assert device.resident_bytes(pointer, 4 * MIB) == 4 * MIB
    mr.deallocate(pointer, 4 * MIB)


def test_touching_discarded_memory_faults_page_by_page(device: SimulatedDevice) -> None:
    mr = managed(device)
    pointer = mr.allocate(2 * MIB)
    device.touch(pointer, 2 * MIB, write=True)
    before = device.statistics()["gpu_fault_groups"]
    device.discard(pointer, 2 * MIB)
    device.touch(pointer, 2 * MIB, write=True)
    assert device.statistics()["gpu_fault_groups"] - before == 512
    mr.deallocate(pointer, 2 * MIB)


def test_neither_device_nor_host_memory_left_is_memory_error() -> None:
    device = rmm_uvm.simulated_device("4MiB", host_memory="2MiB")
    mr = managed(device)
    pointer = mr.allocate(8 * MIB)
    with pytest.raises(MemoryError, match="touching"):
        device.touch(pointer, 8 * MIB, write=True)
    mr.deallocate(pointer, 8 * MIB)


def test_modelled_time_grows_with_bytes_moved(device: SimulatedDevice) -> None:
    mr = managed(device)
    pointer = mr.allocate(8 * MIB)
    device.cpu_touch(pointer, 8 * MIB, write=True)
    before = device.statistics()["modelled_ns"]
    device.prefetch(pointer, 2 * MIB)
    small = device.statistics()["modelled_ns"] - before
    device.prefetch(pointer + 2 * MIB, 6 * MIB)
    large = device.statistics()["modelled_ns"] - before - small
    assert small * 2 < large < small * 4
    mr.deallocate(pointer, 8 * MIB)


@pytest.mark.parametrize("call", ["prefetch", "discard", "discard_and_prefetch"])
def test_memory_that_is_not_managed_is_refused(device: SimulatedDevice, call: str) -> None:
    with pytest.raises(DriverError, match="invalid"):
        getattr(device, call)(4096, 100)


@pytest.mark.parametrize("call", ["discard", "discard_and_prefetch"])
def test_device_without_discard_refuses_it(call: str) -> None:
    device = rmm_uvm.simulated_device("16MiB", discard=False)
    mr = managed(device)
    pointer = mr.allocate(MIB)
    assert not device.info.discard
    with pytest.raises(DriverError, match="not supported"):
        getattr(device, call)(pointer, MIB)
    mr.deallocate(pointer, MIB)


def test_device_without_counters_reads_zero_and_says_why() -> None:
    device = rmm_uvm.simulated_device("16MiB", counters=False)
    mr = managed(device)
    pointer = mr.allocate(MIB)
    device.cpu_touch(pointer, MIB, write=True)
    device.prefetch(pointer, MIB)
    assert device.migrated_bytes() == (0, 0)
    assert device.counters_available().reason == "the simulated device was made without counters"
    mr.deallocate(pointer, MIB)


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        ("out_of_memory", MemoryError, "out of memory"),
        ("driver_error", DriverError, "injected"),
        ("invalid_value", DriverError, "injected"),
        ("not_supported", DriverError, "injected"),
    ],
)
def test_injected_failure_comes_once_after_skipped_calls(
    device: SimulatedDevice, code: str, error: type[Exception], text: str
) -> None:
    device.fail_call("synchronize", code, skip=1)
    device.synchronize()
    with pytest.raises(error, match=text):
        device.synchronize()
    device.synchronize()


def test_injected_failure_is_told_by_the_name_of_its_call(device: SimulatedDevice) -> None:
    for call in ("synchronize", "memory"):
        device.fail_call(call)
        with pytest.raises(DriverError, match=f": injected {call} answered driver error"):
            getattr(device, call)()


def test_counters_faults_and_events_that_fail_say_why_once(device: SimulatedDevice) -> None:
    events = simulated_events(device)
    asked = {
        "available": device.counters_available,
        "request_faults": device.request_faults,
        "start": events.start,
        "open_neighbor": lambda: device.open_neighbor(1),
    }
    for call, ask in asked.items():
        device.fail_call(call, "not_supported")
        refused = ask()
        assert not refused.available
        assert refused.reason == f"injected {call} answered not supported"
        assert f"injected {call}" not in ask().reason
    events.stop()
    device.release_faults()


def test_injected_failure_that_was_not_met_can_be_taken_back(device: SimulatedDevice) -> None:
    device.fail_call("synchronize")
    device.fail_call("prefetch", skip=3)
    assert device.cancel_failures() == 2
    device.synchronize()
    assert device.cancel_failures() == 0


def test_unknown_injection_and_place_are_refused(device: SimulatedDevice) -> None:
    with pytest.raises(ValueError, match="code must be"):
        device.fail_call("prefetch", "bad_luck")
    with pytest.raises(ValueError, match=r"call must be 'memory', .*, not 'prefetches'"):
        device.fail_call("prefetches")
    assert device.cancel_failures() == 0
    with pytest.raises(ValueError, match="state must be"):
        device.set_capture_state(0, "maybe")
    with pytest.raises(ValueError, match="where must be"):
        device.prefetch(0, 1, where="peer")


def test_calls_that_can_fail_are_those_that_the_model_asks_about(device: SimulatedDevice) -> None:
    asked = r'(?:met_by|answer)\("(\w+)"|\bcall += "(\w+)"'
    files = [*CPP.glob("src/sim/*.cpp"), *CPP.glob("include/rmm_uvm/sim/*.hpp")]
    sources = [path.read_text() for path in files]
    found = {"".join(one) for text in sources for one in re.findall(asked, text)}
    with pytest.raises(ValueError, match="call must be") as refused:
        device.fail_call("")
    assert set(re.findall(r"'(\w+)'", str(refused.value))) == found


def test_driver_call_that_fails_during_allocation_is_counted_not_raised() -> None:
    device = rmm_uvm.simulated_device("256MiB")
    device.fail_call("prefetch", "driver_error")
    mr = ManagedMemoryResource(device, account=ManagedAccount())
    pointer = mr.allocate(4 * MIB)
    statistics = mr.prefetcher.statistics()
    assert statistics["failed_calls"] == 1
    assert "injected" in statistics["last_failure"]
    mr.deallocate(pointer, 4 * MIB)


def capture(device: SimulatedDevice, state: str) -> None:
    device.set_capture_state(0, state)
    device.set_capture_state(1, state)  # RMM's default stream is the legacy one by its other name


def test_stream_that_may_capture_gets_no_driver_call() -> None:
    device = rmm_uvm.simulated_device("16MiB")
    mr = rmm_uvm.mr.UvmResourceAdaptor(managed(device), prefetch="always")
    capture(device, "unknown")
    buffer = rmm.DeviceBuffer(size=MIB, mr=mr)
    assert mr.statistics()["skipped"]["capture_unknown"] == 1
    assert mr.statistics()["prefetch_calls"] == 0
    del buffer


def test_memory_of_a_capture_stays_in_use_until_its_graph_ends() -> None:
    device = rmm_uvm.simulated_device("16MiB")
    mr = rmm_uvm.mr.UvmResourceAdaptor(managed(device), prefetch="always")
    before = rmm.DeviceBuffer(size=MIB, mr=mr)
    capture(device, "capturing")
    inside = rmm.DeviceBuffer(size=MIB, mr=mr)
    assert mr.statistics()["prefetch_calls"] == 2  # it is there when it is handed out
    del inside, before
    again = rmm.DeviceBuffer(size=MIB, mr=mr)  # what the capture itself freed
    del again
    assert mr.get_allocated_bytes() == 2 * MIB
    capture(device, "none")
    beside = rmm.DeviceBuffer(size=MIB, mr=mr)
    assert mr.get_allocated_bytes() == 3 * MIB
    device.end_graphs()
    del beside  # what the stream does next frees what waited for it
    assert mr.get_allocated_bytes() == 0


def test_memory_of_a_graph_that_has_ended_is_free_when_the_pool_is_asked() -> None:
    device = rmm_uvm.simulated_device("16MiB")
    mr = rmm_uvm.mr.UvmResourceAdaptor(managed(device))
    capture(device, "capturing")
    inside = rmm.DeviceBuffer(size=MIB, mr=mr)
    capture(device, "none")
    del inside
    rmm.DeviceBuffer(size=MIB, mr=mr)
    assert mr.get_allocated_bytes() == MIB
    device.end_graphs()
    rmm.DeviceBuffer(size=MIB, mr=mr)
    assert mr.get_allocated_bytes() == 0


def test_default_stream_beside_a_capture_is_told_what_to_do() -> None:
    device = rmm_uvm.simulated_device("16MiB")
    mr = rmm_uvm.mr.UvmResourceAdaptor(managed(device), prefetch="always")
    before = rmm.DeviceBuffer(size=MIB, mr=mr)
    capture(device, "implied")
    with pytest.raises(RuntimeError, match="ask in the captured stream, or before"):
        rmm.DeviceBuffer(size=MIB, mr=mr)
    del before  # is freed once the stream can be used again
    capture(device, "none")
    assert rmm.DeviceBuffer(size=MIB, mr=mr).size == MIB
    assert mr.get_allocated_bytes() == 0

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The sampler from Python: layout, reading, levels, threads and the end of things."""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.monitor import FakeClock, Sampler, Slot, levels_of
from rmm_uvm._lib.sim import SimulatedDevice
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known

from ...named_threads import SAMPLER, threads_ended, threads_named

MIB = 1 << 20
SECOND = 1_000_000_000
PATIENCE = 30  # seconds of real time; only a failing test takes them


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sampler(device: SimulatedDevice, clock: FakeClock) -> Iterator[Sampler]:
    sampler = Sampler([Slot(0, device)], SECOND, 100, clock)
    yield sampler
    sampler.stop()


def managed_chain(device: SimulatedDevice, size: int = 128 * MIB) -> UvmResourceAdaptor:
    return UvmResourceAdaptor(rmm.mr.PoolMemoryResource(ManagedMemoryResource(device), size, size))


def test_layout_of_compiled_samples_is_that_of_python(sampler: Sampler, clock: FakeClock) -> None:
    header = Path(__file__).resolve().parents[3] / "cpp/include/rmm_uvm/monitor/sample.hpp"
    body = header.read_text().split("struct sample {")[1].split("\n};")[0]
    fields = [line.split("{")[0].split() for line in body.splitlines() if "std::" in line]
    types = {"std::uint64_t": "<u8", "std::int32_t": "<i4", "std::uint32_t": "<u4"}
    assert np.dtype([(name, types[kind]) for kind, name in fields]) == SAMPLE_DTYPE
    assert SAMPLE_DTYPE.itemsize == 120


def test_fields_of_a_sample_are_what_the_device_says(
    device: SimulatedDevice, clock: FakeClock
) -> None:
    mr = managed_chain(device)
    sampler = Sampler([Slot(3, device)], SECOND, 100, clock)
    sampler.set_levels(3, levels_of(mr))
    sampler.sample_now()
    pointer = mr.allocate(100 * MIB)
    for _ in range(2):  # 100 MiB through 64 MiB: the second pass evicts what the first brought
        for offset in range(0, 100 * MIB, 2 * MIB):
            device.touch(pointer + offset, 2 * MIB, write=True)
    clock.advance(1.5)
    sampler.sample_now()
    samples, next_sequence, lost = sampler.samples()
    assert (next_sequence, lost) == (2, 0)
    first, last = samples
    truth = device.statistics()
    assert all(first[name] == 0 for name in SAMPLE_DTYPE.names[:9])
    assert last["time_ns"] == 1.5 * SECOND
    assert last["host_to_device_bytes"] == truth["host_to_device_bytes"] > 0
    assert last["device_to_host_bytes"] == truth["device_to_host_bytes"] > 0
    assert last["evicted_bytes_estimate"] == truth["evicted_bytes"]
    assert last["footprint_bytes"] == 100 * MIB
    assert last["managed_bytes"] == 128 * MIB
    assert last["resident_bytes"] == truth["resident_bytes"] == 64 * MIB
    assert last["device_used_bytes"] == 64 * MIB
    assert last["device_id"] == 3
    known = Known.COUNTERS | Known.FOOTPRINT | Known.DEVICE | Known.RESIDENT | Known.RESIDENT_EXACT
    assert Known(int(last["known"])) == known
    mr.deallocate(pointer, 100 * MIB)


def test_samples_of_a_device_without_counters_say_so(clock: FakeClock) -> None:
    device = SimulatedDevice(64 * MIB, counters=False)
    sampler = Sampler([Slot(0, device)], SECOND, 10, clock)
    device.fail_call("memory")
    sampler.sample_now()
    sampler.sample_now()
    known = [Known(int(value)) for value in sampler.samples()[0]["known"]]
    assert known[0] == Known.RESIDENT | Known.RESIDENT_EXACT
    assert known[1] == known[0] | Known.DEVICE


def test_slot_without_a_driver_knows_nothing_and_still_samples(clock: FakeClock) -> None:
    sampler = Sampler([Slot(0)], SECOND, 10, clock)
    assert sampler.sample_now()
    assert sampler.samples()[0]["known"].tolist() == [0]


def test_thread_samples_when_its_time_comes(sampler: Sampler, clock: FakeClock) -> None:
    sampler.start()
    sampler.start()
    assert sampler.running
    assert threads_named(SAMPLER) == 1
    for number in range(1, 5):
        clock.advance(1)
        assert sampler.wait(PATIENCE, number)
    sampler.stop()
    sampler.stop()
    assert not sampler.running
    assert threads_ended(SAMPLER)
    samples, next_sequence, _ = sampler.samples()
    assert next_sequence == 5
    assert samples["time_ns"].tolist() == [number * SECOND for number in range(5)]


def test_missed_deadlines_are_skipped(sampler: Sampler, clock: FakeClock) -> None:
    sampler.start()
    clock.advance(10.25)
    assert sampler.wait(PATIENCE, 1)
    clock.advance(0.5)  # the next one is due at 11
    assert not sampler.wait(0, 2)
    clock.advance(0.25)
    assert sampler.wait(PATIENCE, 2)
    assert sampler.samples()[0]["time_ns"].tolist() == [0, 10.25 * SECOND, 11 * SECOND]


def test_wait_for_a_sample_that_does_not_come_ends(sampler: Sampler) -> None:
    assert not sampler.wait()  # no thread: nothing will come
    sampler.start()
    assert not sampler.wait(0.05)
    waiting = threading.Thread(target=sampler.wait)
    waiting.start()
    sampler.stop()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_full_ring_drops_the_oldest_and_says_how_many(
    device: SimulatedDevice, clock: FakeClock
) -> None:
    sampler = Sampler([Slot(0, device)], SECOND, 4, clock)
    for _ in range(10):
        sampler.sample_now()
        clock.advance(1)
    samples, next_sequence, lost = sampler.samples()
    assert (samples["time_ns"] // SECOND).tolist() == [6, 7, 8, 9]
    assert (next_sequence, lost) == (10, 6)
    assert sampler.samples(8)[2] == 0
    assert len(sampler.samples(8)[0]) == 2
    assert [
        len(part) if number == 0 else part for number, part in enumerate(sampler.samples(10))
    ] == [0, 10, 0]
    samples["time_ns"] = 0  # a copy, and writable
    assert sampler.samples()[0]["time_ns"].any()


def test_several_devices_are_sampled_together(clock: FakeClock) -> None:
    slots = [Slot(number, rmm_uvm.simulated_device("64MiB")) for number in (0, 1)]
    sampler = Sampler(slots, SECOND, 100, clock)
    sampler.sample_now()
    assert sampler.samples()[0]["device_id"].tolist() == [0, 1]


def test_totals_begin_with_the_sampler_and_survive_a_restart(
    device: SimulatedDevice, clock: FakeClock
) -> None:
    mr = ManagedMemoryResource(device, prefetch="never")
    pointer = mr.allocate(8 * MIB)
    device.cpu_touch(pointer, 8 * MIB, write=True)
    device.touch(pointer, 4 * MIB)
    sampler = Sampler([Slot(0, device)], SECOND, 100, clock)
    sampler.start()
    assert sampler.samples()[0]["host_to_device_bytes"].tolist() == [0]
    sampler.stop()
    device.touch(pointer, 8 * MIB)
    sampler.start()
    sampler.stop()
    assert sampler.samples()[0]["host_to_device_bytes"].tolist() == [0, 4 * MIB]
    mr.deallocate(pointer, 8 * MIB)


def test_own_prefetches_to_the_host_are_no_evictions(
    device: SimulatedDevice, sampler: Sampler
) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(64 * MIB)
    device.prefetch(pointer, 64 * MIB)
    device.touch(pointer, 64 * MIB, write=True)
    sampler.sample_now()
    device.prefetch(pointer, 16 * MIB, where="host")
    sampler.sample_now()
    last = sampler.samples()[0][-1]
    assert last["device_to_host_bytes"] == last["own_to_host_bytes"] == 16 * MIB
    assert last["evicted_bytes_estimate"] == 0
    mr.deallocate(pointer, 64 * MIB)


def test_what_the_cpu_touches_on_a_device_with_room_is_no_eviction(
    device: SimulatedDevice, sampler: Sampler
) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(32 * MIB)
    device.touch(pointer, 32 * MIB, write=True)
    sampler.sample_now()
    device.cpu_touch(pointer, 32 * MIB)
    sampler.sample_now()
    last = sampler.samples()[0][-1]
    assert last["device_to_host_bytes"] == 32 * MIB
    assert last["evicted_bytes_estimate"] == 0
    mr.deallocate(pointer, 32 * MIB)


def test_faults_are_counted_from_start_to_stop_when_asked_for(
    device: SimulatedDevice, clock: FakeClock
) -> None:
    sampler = Sampler([Slot(0, device, faults=True)], SECOND, 100, clock)
    assert not sampler.faults(0).available
    sampler.start()
    assert sampler.faults(0).available
    mr = ManagedMemoryResource(device, prefetch="never")
    pointer = mr.allocate(2 * MIB)
    device.touch(pointer, 2 * MIB)
    sampler.sample_now()
    sampler.stop()
    last = sampler.samples()[0][-1]
    assert last["gpu_faults"] > 0
    assert int(last["known"]) & Known.FAULTS
    mr.deallocate(pointer, 2 * MIB)


def test_faults_that_nobody_asked_for_are_unknown(sampler: Sampler) -> None:
    sampler.start()
    assert sampler.faults(0).reason == "faults were not asked for"
    assert sampler.faults(5).reason == "device 5 is not watched"
    assert not int(sampler.samples()[0]["known"][0]) & Known.FAULTS


def test_levels_can_be_replaced_and_keep_no_memory(
    device: SimulatedDevice, sampler: Sampler
) -> None:
    mr = managed_chain(device, 32 * MIB)
    sampler.set_levels(0, levels_of(mr))
    pointer = mr.allocate(MIB)
    sampler.sample_now()
    mr.deallocate(pointer, MIB)
    del mr
    gc.collect()
    assert device.statistics()["managed_bytes"] == 0
    sampler.sample_now()
    sampler.set_levels(0, None)
    sampler.sample_now()
    samples = sampler.samples()[0]
    assert samples["footprint_bytes"][:2].tolist() == [MIB, 0]
    assert samples["managed_bytes"].tolist() == [32 * MIB, 0, 0]
    assert [bool(known & Known.FOOTPRINT) for known in samples["known"].tolist()] == [
        True,
        True,
        False,
    ]


def test_levels_of_a_foreign_chain_are_told_from_outside(
    device: SimulatedDevice, sampler: Sampler
) -> None:
    sampler.set_external_footprint(0, 5 * MIB, 8 * MIB)
    sampler.sample_now()
    sampler.set_external_footprint(0, None)
    sampler.sample_now()
    samples = sampler.samples()[0]
    assert samples["footprint_bytes"][0] == 5 * MIB
    assert samples["managed_bytes"][0] == 8 * MIB
    assert bool(samples["known"][0] & Known.FOOTPRINT)
    assert not bool(samples["known"][1] & Known.FOOTPRINT)
    mr = managed_chain(device, 32 * MIB)
    sampler.set_external_footprint(0, 5 * MIB)
    sampler.set_levels(0, levels_of(mr))  # ours goes first
    sampler.sample_now()
    assert sampler.samples()[0]["managed_bytes"][-1] == 32 * MIB


def test_levels_of_rmms_own_resource_are_refused() -> None:
    with pytest.raises(TypeError, match="PoolMemoryResource does not tell its levels"):
        levels_of(
            rmm.mr.PoolMemoryResource(
                ManagedMemoryResource(rmm_uvm.simulated_device("64MiB")), MIB, MIB
            )
        )


def test_unknown_device_is_refused(sampler: Sampler) -> None:
    with pytest.raises(ValueError, match="device 7 is not watched; watched: 0"):
        sampler.set_levels(7, None)
    with pytest.raises(ValueError, match="device 7 is not watched"):
        sampler.set_external_footprint(7, 0)


@pytest.mark.parametrize(("interval_ns", "capacity"), [(0, 1), (1, 0)])
def test_interval_or_capacity_of_zero_is_refused(interval_ns: int, capacity: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Sampler([], interval_ns, capacity)


def test_capacity_beyond_all_memory_is_refused() -> None:
    for capacity in (1 << 50, 1 << 60):
        with pytest.raises(MemoryError):
            Sampler([], 1, capacity)


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_clock_is_not_put_back(clock: FakeClock, seconds: float) -> None:
    with pytest.raises(ValueError, match="cannot be advanced"):
        clock.advance(seconds)


def test_cost_is_told_and_the_thread_needs_no_python(device: SimulatedDevice) -> None:
    sampler = Sampler([Slot(0, device)], 1_000_000)
    sampler.start()
    assert sampler.wait(PATIENCE, 10)
    sampler.stop()
    assert 0 < sampler.cost_seconds < 1

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Budgets on a GPU: no policy loses a byte, and what they rest on holds."""

from __future__ import annotations

import gc
import importlib
import os
import random
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import cupy
import pytest
import rmm
from rmm.pylibrmm.stream import Stream

import rmm_uvm
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.residency import POLICIES, Budget

from .contents import PatternBuffer
from .free_memory import steady_free_bytes

pytestmark = pytest.mark.gpu

OTHERS = range(1, cupy.cuda.runtime.getDeviceCount())  # each as a neighbour of the first
REPOSITORY = Path(__file__).parents[2]
MIB = 1 << 20
BUDGET_BYTES = 192 * MIB
POOL_BYTES = 1024 * MIB
# Free memory of an H200 changes in such steps: 64 MiB taken by the kernel driver may not show.
TOLD_BYTES = 128 * MIB


def benchmark(name: str) -> ModuleType:
    """Load a program of the benchmarks."""
    return importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(REPOSITORY)])
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "2GiB")


def random_program(arrays: Any, seed: int, steps: int) -> None:
    """Allocate, read, write and free at random, up to twice the budget."""
    chosen = random.Random(seed)
    held: dict[int, int] = {}
    for _ in range(steps):
        room = sum(held.values()) < 2 * BUDGET_BYTES
        if not held or (room and chosen.random() < 0.4):
            nbytes = chosen.choice([4096, MIB, 5 * MIB + 4096, 32 * MIB, 64 * MIB])
            held[arrays.make(nbytes)] = nbytes
        elif chosen.random() < 0.3:
            handle = chosen.choice(list(held))
            arrays.free(handle)
            del held[handle]
        else:
            (arrays.write if chosen.random() < 0.5 else arrays.read)(chosen.choice(list(held)))
    for handle in held:
        arrays.free(handle)


def random_programs(gpu: CudaDriver, budget: Budget) -> dict[str, Any]:
    """Run several over a budget, whose data must be right; return what was done to keep it."""
    arrays_type = benchmark("common.gpu_arrays").GpuArrays
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=budget,
    )
    arrays = arrays_type(mr, passes=20)
    for seed in range(4):
        random_program(arrays, seed, 300)
    assert arrays.finish() == 0
    kept = mr.managed_mr.residency.residency()
    assert kept is not None
    assert kept["failed_calls"] == 0
    assert kept["peak_resident_bytes"] <= BUDGET_BYTES
    assert kept["evicted_bytes"] > 0
    assert kept["dropped_bytes"] > 0
    return kept


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize(
    ("policy", "ahead", "direct", "ranked"),
    [(policy, ahead, True, False) for policy in POLICIES for ahead in (True, False)]
    + [("repeat", True, False, False), ("lru", False, False, False)]
    + [("repeat", True, True, True), ("lru", False, False, True)],
)
def test_no_policy_loses_a_byte_over_random_programs(
    gpu: CudaDriver, policy: str, ahead: bool, direct: bool, ranked: bool
) -> None:
    settings: dict[str, Any] = {"ahead": ahead, "direct": direct, "rank_dead": ranked}
    random_programs(gpu, Budget(BUDGET_BYTES, policy=policy, **settings))


@pytest.mark.usefixtures("benchmarks")
def test_budgets_that_start_change_and_end_lose_no_byte(gpu: CudaDriver) -> None:
    arrays_type = benchmark("common.gpu_arrays").GpuArrays
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=None,
    )
    arrays = arrays_type(mr, passes=20)
    held = [arrays.make(size) for size in (64 * MIB, 5 * MIB + 4096, 32 * MIB, 64 * MIB)]
    evicted = 0
    for seed, budget in enumerate((BUDGET_BYTES, 2 * BUDGET_BYTES, None, BUDGET_BYTES, None)):
        mr.set_budget(budget)
        random_program(arrays, seed, 100)
        for array in held:
            arrays.write(array)
        kept = mr.managed_mr.residency.residency()
        assert (kept is None) == (budget is None)
        evicted += kept["evicted_bytes"] if kept else 0
    assert evicted > 0
    assert arrays.finish() == 0


def not_on_the_host(buffers: list[PatternBuffer]) -> int:
    """Return the bytes of buffers that the CPU has not mapped, by its page tables."""
    page_bytes = os.sysconf("SC_PAGESIZE")
    missing = 0
    with Path("/proc/self/pagemap").open("rb", buffering=0) as pages:
        for buffer in buffers:
            pages.seek(buffer.address // page_bytes * 8)
            entries = pages.read(buffer.nbytes // page_bytes * 8)
            missing += sum(not byte & 0x80 for byte in entries[7::8]) * page_bytes
    return missing


@pytest.mark.parametrize("direct", [True, False])
def test_what_kernels_fault_in_unannounced_is_found_and_the_budget_holds(
    gpu: CudaDriver, direct: bool
) -> None:
    assert gpu.info.host_pages, gpu.info.host_pages.reason
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=Budget(BUDGET_BYTES, direct=direct),
    )
    stream = cupy.cuda.Stream(non_blocking=True)
    buffers = [PatternBuffer.make(mr, 32 * MIB, seed, stream) for seed in range(24)]
    wrong = cupy.zeros(1, dtype=cupy.uint64)
    for _ in range(3):
        for buffer in buffers:
            buffer.count_wrong(wrong)
    stream.synchronize()
    end = time.monotonic() + 20
    while not_on_the_host(buffers) > BUDGET_BYTES and time.monotonic() < end:
        time.sleep(0.01)
    assert not_on_the_host(buffers) <= BUDGET_BYTES
    kept = rmm_uvm.residency_statistics(mr)
    assert kept.found_bytes > len(buffers) * 32 * MIB - BUDGET_BYTES
    assert kept.failed_calls == 0
    assert int(wrong[0]) == 0
    for buffer in buffers:
        mr.deallocate(buffer.address, buffer.nbytes, Stream(stream))


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("neighbour", OTHERS)
def test_live_blocks_that_leave_to_another_gpu_lose_no_byte(
    gpu: CudaDriver, neighbour: int, policy: str
) -> None:
    to_host = gpu.migrated_bytes()[1]
    kept = random_programs(gpu, Budget(BUDGET_BYTES, policy=policy, neighbors=[neighbour]))
    assert kept["neighbor_bytes"] == kept["evicted_bytes"]
    assert gpu.migrated_bytes()[1] - to_host < kept["evicted_bytes"] // 10  # what faults brought


@pytest.mark.parametrize("neighbour", OTHERS)
def test_blocks_are_at_the_neighbour_that_was_named(gpu: CudaDriver, neighbour: int) -> None:
    other = rmm_uvm.cuda_driver(neighbour)
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=Budget(BUDGET_BYTES, neighbors=[neighbour], background=False),
    )
    free_bytes = steady_free_bytes(other)
    part_bytes = 64 * MIB
    parts = [mr.allocate(part_bytes) for _ in range(POOL_BYTES // part_bytes)]
    cupy.cuda.runtime.deviceSynchronize()  # streams of the manager too
    evicted_bytes = rmm_uvm.residency_statistics(mr).neighbor_bytes
    assert evicted_bytes >= POOL_BYTES - BUDGET_BYTES
    assert free_bytes - other.memory()[0] >= evicted_bytes - TOLD_BYTES
    for address in parts:
        mr.deallocate(address, part_bytes)


def test_direct_migration_moves_exactly_what_is_asked_while_kernels_write(
    gpu: CudaDriver,
) -> None:
    assert gpu.info.direct_migration, gpu.info.direct_migration.reason
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=64 * MIB,
        maximum_pool_size=64 * MIB,
        device_budget=None,
    )
    address = int(mr.allocate(64 * MIB))
    memory = cupy.cuda.UnownedMemory(address, 64 * MIB, mr)
    words = cupy.ndarray(16 * MIB, cupy.uint32, cupy.cuda.MemoryPointer(memory, 0))
    words.fill(0)
    cupy.cuda.runtime.deviceSynchronize()
    before = gpu.migrated_bytes()
    gpu.migrate(address, 32 * MIB, "host")
    gpu.migrate(address, 32 * MIB, "device")
    after = gpu.migrated_bytes()
    assert [b - a for a, b in zip(before, after, strict=True)] == [32 * MIB, 32 * MIB]
    for _ in range(50):
        words += 1  # under way while its pages leave
        gpu.migrate(address, 64 * MIB, "host")
    assert bool((words == 50).all())
    del words, memory
    mr.deallocate(address, 64 * MIB)


@pytest.mark.usefixtures("benchmarks")
def test_several_streams_and_threads_lose_nothing(gpu: CudaDriver) -> None:
    import threading

    from rmm.pylibrmm.stream import Stream

    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=Budget(BUDGET_BYTES),
    )
    wrong: list[int] = []

    def work(seed: int) -> None:
        chosen = random.Random(seed)
        stream = cupy.cuda.Stream(non_blocking=True)
        ours = Stream(stream)
        touch = mr.managed_mr.residency.touch
        with stream:
            for step in range(60):
                nbytes = chosen.choice([MIB, 7 * MIB, 40 * MIB])
                address = int(mr.allocate(nbytes, ours))
                memory = cupy.cuda.UnownedMemory(address, nbytes, mr)
                words = cupy.ndarray(nbytes // 4, cupy.uint32, cupy.cuda.MemoryPointer(memory, 0))
                words.fill(step)
                for _ in range(3):
                    touch(address, nbytes, address, stream.ptr)
                    words += 1
                wrong.append(int((words != step + 3).sum()))
                del words, memory
                mr.deallocate(address, nbytes, ours)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 4 * 60
    assert sum(wrong) == 0


@pytest.mark.usefixtures("benchmarks")
def test_what_data_that_are_read_would_show_is_seen(gpu: CudaDriver) -> None:
    # The twin: words that are wrong are counted.
    arrays = benchmark("common.gpu_arrays").GpuArrays(rmm_uvm.managed_pool(driver=gpu))
    first, second = arrays.make(MIB), arrays.make(MIB)
    arrays._held[first], arrays._held[second] = arrays._held[second], arrays._held[first]
    arrays.read(first)
    assert arrays.finish() == MIB // 8


@pytest.mark.usefixtures("benchmarks")
def test_discards_take_effect_in_the_order_that_the_package_relies_on() -> None:
    module = benchmark("driver.deferred_discards")
    bench = module.Bench()
    for name, (case, relied_on) in module.CASES.items():
        for value in range(1000, 11000, 1000):
            case(bench, value)
            bench.synchronize()
            bench.evict()
            bench.synchronize()
            assert bench.wrong(value) == 0 or not relied_on, name
    bench.memory.deallocate(bench.address, module.BYTES)


FRAME_BYTES = 256 * MIB  # comes while another one leaves


def mappings(begin: int, nbytes: int) -> int:
    """Return how many mappings of this process memory lies in."""
    found = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, end = (int(part, 16) for part in line.split(maxsplit=1)[0].split("-"))
        found += first < begin + nbytes and end > begin
    return found


def words(buffer: rmm.DeviceBuffer) -> cupy.ndarray:
    """Return the buffer as an array of words."""
    memory = cupy.cuda.UnownedMemory(buffer.ptr, buffer.size, buffer)
    return cupy.ndarray((buffer.size // 8,), cupy.uint64, cupy.cuda.MemoryPointer(memory, 0))


def test_slab_is_mapped_in_parts_and_memory_of_the_runtime_in_one() -> None:
    driver = rmm_uvm.cuda_driver(0)
    if not driver.info.direct_migration:
        pytest.skip(driver.info.direct_migration.reason)
    ours = rmm.DeviceBuffer(size=64 * MIB, mr=rmm_uvm.mr.ManagedMemoryResource(driver))
    plain = rmm.DeviceBuffer(size=64 * MIB, mr=rmm.mr.ManagedMemoryResource())
    assert mappings(ours.ptr, ours.size) == 16
    assert mappings(plain.ptr, plain.size) == 1


def test_large_frames_that_change_places_lose_no_byte() -> None:
    budget_bytes = FRAME_BYTES * 3 // 2
    mr = rmm_uvm.managed_pool(
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=Budget(budget_bytes),
    )
    frames = [rmm.DeviceBuffer(size=FRAME_BYTES, mr=mr) for _ in range(3)]
    for number, frame in enumerate(frames):
        words(frame)[:] = cupy.arange(FRAME_BYTES // 8, dtype=cupy.uint64) * (number + 1)
    for turn in range(6):
        for number, frame in enumerate(frames):
            rmm_uvm.touch(frame, mr=mr)
            array = words(frame)
            factor = number + 1 + turn
            expected = cupy.arange(FRAME_BYTES // 8, dtype=cupy.uint64) * factor
            assert bool((array == expected).all())
            array += cupy.arange(FRAME_BYTES // 8, dtype=cupy.uint64)
    statistics = rmm_uvm.residency_statistics(mr)
    assert statistics.failed_calls == 0
    assert statistics.fetched_bytes >= 6 * FRAME_BYTES
    assert statistics.resident_bytes <= budget_bytes


def test_frames_that_are_read_leave_without_a_copy_and_lose_no_byte_written() -> None:
    mr = rmm_uvm.managed_pool(
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=Budget(FRAME_BYTES * 3 // 2),
    )
    frames = [rmm.DeviceBuffer(size=FRAME_BYTES, mr=mr) for _ in range(3)]
    expected = [cupy.arange(FRAME_BYTES // 8, dtype=cupy.uint64) * (n + 1) for n in range(3)]
    for frame, content in zip(frames, expected, strict=True):
        words(frame)[:] = content
    chosen = random.Random(7)
    for turn in range(8):
        for frame, content in zip(frames, expected, strict=True):
            use = (frame.ptr, frame.size, frame.ptr)
            mr.managed_mr.residency.touch_all((use,), only_read=True)
            assert bool((words(frame) == content).all())
            if turn in (3, 5):  # somebody who says nothing
                at = chosen.randrange(FRAME_BYTES // 8 - 1000)
                words(frame)[at : at + 1000] += 1
                content[at : at + 1000] += 1
    statistics = rmm_uvm.residency_statistics(mr)
    assert statistics.failed_calls == 0
    assert statistics.uncopied_bytes > 4 * FRAME_BYTES
    assert statistics.resident_bytes <= FRAME_BYTES * 3 // 2


def test_what_is_going_to_leave_is_copied_before_and_loses_no_byte() -> None:
    budget_bytes = FRAME_BYTES * 3 // 2
    mr = rmm_uvm.managed_pool(
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=Budget(budget_bytes),
    )
    residency = mr.managed_mr.residency
    other = rmm.DeviceBuffer(size=64 * MIB, mr=mr)

    def read(frame: rmm.DeviceBuffer) -> None:
        residency.touch_all(((frame.ptr, frame.size, frame.ptr),), only_read=True)

    for turn in range(16):
        table = rmm.DeviceBuffer(size=FRAME_BYTES, mr=mr)
        content = cupy.arange(FRAME_BYTES // 8, dtype=cupy.uint64) * (turn + 1)
        words(table)[:] = content
        for _ in range(3):
            read(table)
            assert bool((words(table) == content).all())
        residency.touch(other.ptr, other.size, other.ptr)
        time.sleep(0.05)  # for the thread
        if turn in (11, 14):  # somebody who says nothing
            words(table)[1000:2000] += 1
            content[1000:2000] += 1
        read(table)
        result = rmm.DeviceBuffer(size=FRAME_BYTES, mr=mr)
        words(result)[:] = content + cupy.uint64(1)
        read(result)
        assert bool((words(result) == content + cupy.uint64(1)).all())
        del result
        read(table)
        assert bool((words(table) == content).all())
        del table
    statistics = rmm_uvm.residency_statistics(mr)
    assert statistics.failed_calls == 0
    assert statistics.copied_early_bytes > FRAME_BYTES
    assert statistics.uncopied_bytes > FRAME_BYTES
    assert statistics.resident_bytes <= budget_bytes


def test_budget_gives_way_to_others_on_a_pretended_card_and_comes_back(gpu: CudaDriver) -> None:
    gc.collect()  # pools of other tests are not to give memory back meanwhile
    free_bytes, total_bytes = gpu.memory()
    room_bytes = 768 * MIB
    card_bytes = total_bytes - free_bytes + room_bytes  # with what contexts hold already
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=Budget(card_bytes, follows=True),
    )
    stream = cupy.cuda.Stream(non_blocking=True)
    others = rmm.mr.CudaMemoryResource()
    buffers = [PatternBuffer.make(mr, 64 * MIB, seed, stream) for seed in range(14)]

    def budget_after(least: int, most: int) -> int:
        """Use all of it again and again, until the budget is what it should be."""
        begun = time.monotonic()
        while True:
            for buffer in buffers:
                rmm_uvm.touch((buffer.address, buffer.nbytes), stream=stream, mr=mr)
                buffer.count_wrong(wrong)
            stream.synchronize()
            size_bytes = mr.budget_bytes
            assert size_bytes is not None
            if least <= size_bytes <= most or time.monotonic() - begun > 20:
                return size_bytes

    wrong = cupy.zeros(1, dtype=cupy.uint64)
    first = budget_after(room_bytes - 160 * MIB, room_bytes + TOLD_BYTES)
    taken = others.allocate(256 * MIB)
    second = budget_after(first - 300 * MIB, first - 200 * MIB)
    left_by = time.monotonic() + 5  # the thread has the rest leave, and nobody calls meanwhile
    counts = rmm_uvm.residency_statistics(mr)
    while counts.resident_bytes > second + 64 * MIB and time.monotonic() < left_by:
        time.sleep(0.005)
        counts = rmm_uvm.residency_statistics(mr)
    others.deallocate(taken, 256 * MIB)
    third = budget_after(first - 64 * MIB, first + 64 * MIB)
    said = f"{first >> 20}, {second >> 20}, {third >> 20} MiB: {counts}"
    assert abs(first - room_bytes) <= 160 * MIB, said
    assert 200 * MIB <= first - second <= 300 * MIB, said
    assert abs(third - first) <= 64 * MIB, said
    assert counts.resident_bytes <= second + 64 * MIB, said
    assert counts.failed_calls == 0, said
    assert counts.unmanaged_bytes > 256 * MIB, said
    assert int(wrong[0]) == 0
    for buffer in buffers:
        buffer.free(mr)
    stream.synchronize()

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Slabs are mapped in parts for the CPU, so that threads evict in parallel, and lose no byte."""

from __future__ import annotations

from pathlib import Path

import cupy
import pytest
import rmm

import rmm_uvm
from rmm_uvm.residency import Budget

pytestmark = pytest.mark.gpu

MIB = 1 << 20
FRAME_BYTES = 256 * MIB  # so large that it comes while another one leaves
BUDGET_BYTES = 384 * MIB


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
    mr = rmm_uvm.managed_pool(
        initial_pool_size=1024 * MIB,
        maximum_pool_size=1024 * MIB,
        device_budget=Budget(BUDGET_BYTES),
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
    assert statistics.resident_bytes <= BUDGET_BYTES

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Oversubscription is told within three samples, each kind with what fits the situation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.mr import ManagedAccount, ManagedMemoryResource, SimulatedCudaMemoryResource
from rmm_uvm.watch.judging.thresholds import Thresholds

from .watched_device import WatchedDevice, prefetches_of

MIB = 1 << 20
DEVICE_BYTES = 64 * MIB
PIECE_BYTES = 4 * MIB


class Program:
    """Allocates pieces of managed memory on a fresh device, and touches them."""

    def __init__(
        self,
        pieces: int,
        prefetch: str = "never",
        thresholds: Thresholds | None = None,
        neighbor_bytes: int = 0,
    ) -> None:
        self.device = rmm_uvm.simulated_device(DEVICE_BYTES)
        self.neighbour = SimulatedCudaMemoryResource(self.device)
        if neighbor_bytes:
            self.neighbour.allocate(neighbor_bytes)
        self.mr: Any = rmm_uvm.mr.UvmResourceAdaptor(
            ManagedMemoryResource(self.device, prefetch="never", account=ManagedAccount()),
            prefetch=prefetch,
        )
        self.watched = WatchedDevice(
            self.device,
            self.mr.get_allocated_bytes,
            prefetches_of(self.mr),
            prefetch=prefetch,
            thresholds=thresholds,
        )
        self.pieces = [self.mr.allocate(PIECE_BYTES) for _ in range(pieces)]
        self.watched.tick()

    def touch(self, pieces: Sequence[int]) -> None:
        for piece in pieces:
            self.device.touch(piece, PIECE_BYTES, write=True)

    def cycle(self) -> None:
        """Touch everything once, and take a sample."""
        self.touch(self.pieces)
        self.watched.tick()


def samples_until(program: Program, kind: str, most: int) -> int:
    """Return how many cycles it takes until a kind is found."""
    for cycle in range(1, most + 1):
        program.cycle()
        if kind in program.watched.kinds():
            return cycle
    raise AssertionError(f"no {kind} in {most} samples: {program.watched.kinds()}")


def test_footprint_over_the_device_is_told_at_the_first_sample() -> None:
    program = Program(pieces=24)
    assert program.watched.kinds() == ["footprint"]
    finding = program.watched.findings()[0]
    assert finding.value == 1.5
    assert "96.00 MiB are allocated and 64.00 MiB fit" in finding.message


def test_footprint_of_the_whole_device_is_not_told() -> None:
    program = Program(pieces=16)
    program.cycle()
    assert program.watched.kinds() == []


def test_thrashing_is_told_within_three_samples() -> None:
    program = Program(pieces=24)
    assert samples_until(program, "amplification", most=3) <= 3
    # One situation, one remedy: not eviction as well.
    assert program.watched.kinds() == ["footprint", "amplification"]


def test_cycle_over_what_fits_is_no_thrashing() -> None:
    program = Program(pieces=16)
    for _ in range(30):
        program.cycle()
    assert program.watched.kinds() == []


def test_sustained_eviction_is_told_within_three_samples() -> None:
    # Each sample writes a piece that was never there: something leaves, and nothing comes back.
    program = Program(pieces=40, thresholds=Thresholds(footprint_factor=None))
    program.touch(program.pieces[:16])
    program.watched.tick()
    assert program.watched.kinds() == []
    for piece in program.pieces[16:19]:
        program.touch([piece])
        program.watched.tick()
    (finding,) = program.watched.findings()
    assert finding.kind == "eviction"
    assert finding.value == pytest.approx(PIECE_BYTES / 0.1)
    assert "work on less data at a time: 160.00 MiB are allocated, 64.00 MiB fit" in finding.remedy


def test_one_burst_of_evictions_is_not_told() -> None:
    program = Program(pieces=20, thresholds=Thresholds(footprint_factor=None))
    program.cycle()
    for _ in range(20):
        program.watched.tick()
    assert program.watched.kinds() == []


def test_eviction_for_a_neighbour_is_told_as_device_taken() -> None:
    program = Program(pieces=12, neighbor_bytes=32 * MIB)
    assert samples_until(program, "device_taken", most=3) <= 3
    assert program.watched.kinds() == ["device_taken"]
    (finding,) = program.watched.findings()
    assert (finding.value, finding.threshold) == (32 * MIB, 16 * MIB)


def test_neighbour_in_the_room_left_over_is_not_told() -> None:
    program = Program(pieces=12, neighbor_bytes=16 * MIB)
    for _ in range(10):
        program.cycle()
    assert program.watched.kinds() == []


def test_allocations_that_are_prefetched_and_evict_are_told_as_prefetch() -> None:
    program = Program(pieces=16, prefetch="always", thresholds=Thresholds(footprint_factor=None))
    program.cycle()
    for _ in range(3):
        program.mr.allocate(PIECE_BYTES)
        program.watched.tick()
    (finding,) = program.watched.findings()
    assert finding.kind == "prefetch"
    assert 'prefetch="auto"' in finding.remedy


def test_the_same_allocations_without_prefetch_are_not_told() -> None:
    program = Program(pieces=16, thresholds=Thresholds(footprint_factor=None))
    program.cycle()
    for _ in range(3):
        program.mr.allocate(PIECE_BYTES)
        program.watched.tick()
    assert program.watched.kinds() == []


def test_cpu_and_gpu_taking_turns_on_a_full_device_is_not_told() -> None:
    program = Program(pieces=16)
    program.cycle()
    for _ in range(10):
        program.device.cpu_touch(program.pieces[0], PIECE_BYTES, write=True)
        program.watched.tick()
        program.cycle()
    moved = program.device.migrated_bytes()
    assert min(moved) >= 10 * PIECE_BYTES
    assert program.watched.kinds() == []

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""While a program's order is being learnt, what kernels use unannounced stays as with "lru"."""

from __future__ import annotations

import pytest

import rmm_uvm
from rmm_uvm.residency import Budget, ResidencyStatistics

MIB = 1 << 20
PIECE = 4 * MIB


def after_first_iterations(policy: str) -> ResidencyStatistics:
    """Grow past the budget beside what an operation works in; nobody announces that twice."""
    device = rmm_uvm.simulated_device("256MiB")
    mr = rmm_uvm.managed_pool(
        driver=device,
        device_budget=Budget(64 * MIB, policy, background=False),
        initial_pool_size=192 * MIB,
        maximum_pool_size=192 * MIB,
    )

    def new(nbytes: int) -> tuple[int, int]:
        address = int(mr.allocate(nbytes))
        device.touch(address, nbytes, write=True)
        return address, nbytes

    def use(data: tuple[int, int]) -> None:
        rmm_uvm.touch(data, mr=mr)
        device.touch(*data)

    for _ in range(3):
        kept: list[tuple[int, int]] = []
        for _ in range(12):  # fits: nothing is foreseen, and uses are not written down
            kept.append(new(PIECE))
            for data in kept[-3:]:
                use(data)
        work = [new(PIECE // 2) for _ in range(4)]
        for _ in range(8):  # does not fit
            kept.append(new(PIECE))
            for data in work:
                device.touch(*data)
        for data in work:
            mr.deallocate(*data)
        for _ in range(10):
            for data in kept:
                use(data)
        for data in kept:
            mr.deallocate(*data)
    return rmm_uvm.residency_statistics(mr)


@pytest.mark.parametrize("policy", ["lru", "repeat"])
def test_memory_of_which_nothing_is_known_is_not_taken_for_unused(policy: str) -> None:
    found = after_first_iterations(policy)
    assert found.evicted_bytes > 64 * MIB  # it does not fit
    assert found.foresees is (policy == "repeat")
    assert found.faulted_bytes == 0


def test_memory_that_leaves_before_an_unannounced_use_would_be_noticed() -> None:
    # The other side of this test: the figure sees a block that kernels fault back.
    device = rmm_uvm.simulated_device("256MiB")
    mr = rmm_uvm.managed_pool(driver=device, device_budget=Budget(64 * MIB, background=False))
    address = int(mr.allocate(PIECE))
    device.touch(address, PIECE, write=True)
    assert rmm_uvm.evict((address, PIECE), mr=mr).moved_bytes == PIECE
    device.touch(address, PIECE)
    assert rmm_uvm.residency_statistics(mr).faulted_bytes == PIECE

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A loop over pieces that look alike moves little more than does not fit, and all of it ahead."""

from __future__ import annotations

from random import Random

import pytest

import rmm_uvm
from rmm_uvm.residency import Budget

BLOCK_BYTES = 2 << 20
LEARNT = 4  # rounds
COUNTED = 12


def moved_once_learnt(sizes: list[int], budget_blocks: int) -> dict[str, float]:
    """Go round pieces of so many blocks; return what moved in a round, in blocks."""
    device = rmm_uvm.simulated_device(4 * sum(sizes) * BLOCK_BYTES)
    mr = rmm_uvm.managed_pool(
        driver=device,
        device_budget=Budget(budget_blocks * BLOCK_BYTES, background=False),
        maximum_pool_size=2 * sum(sizes) * BLOCK_BYTES,
    )
    pieces = [(mr.allocate(size * BLOCK_BYTES), size * BLOCK_BYTES) for size in sizes]
    residency = mr.managed_mr.residency
    figures = ("evicted_bytes", "fetched_bytes", "fetched_ahead_bytes")
    before = dict.fromkeys(figures, 0)
    for number in range(LEARNT + COUNTED):
        if number == LEARNT:
            before = {name: residency.residency()[name] for name in figures}
        for piece in pieces:
            rmm_uvm.touch(piece, mr=mr)
            device.compute(0.0002)
            device.synchronize()
            residency.run_pending()
    moved = {
        name: (residency.residency()[name] - before[name]) / BLOCK_BYTES / COUNTED
        for name in figures
    }
    for address, size_bytes in pieces:
        mr.deallocate(address, size_bytes)
    return moved


@pytest.mark.parametrize("most_blocks", [1, 2, 3])
def test_only_what_does_not_fit_moves_and_comes_ahead(most_blocks: int) -> None:
    random = Random(1)
    sizes = [random.randint(1, most_blocks) for _ in range(1000)]
    budget_blocks = 3 * sum(sizes) // 4
    too_many = sum(sizes) - budget_blocks
    moved = moved_once_learnt(sizes, budget_blocks)
    assert moved["fetched_bytes"] == 0
    # What comes ahead takes room that others leave for.
    assert too_many <= moved["evicted_bytes"] <= 1.25 * too_many
    assert moved["fetched_ahead_bytes"] == pytest.approx(moved["evicted_bytes"], rel=0.05)

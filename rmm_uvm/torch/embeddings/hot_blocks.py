# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which blocks of a table stay on the device: the ones that are looked up most.

Covers the choice, which is a pure function, and how much room there is. Moving them is
`rmm_uvm.torch.embeddings.row_memory`.
"""

from __future__ import annotations

import torch

from rmm_uvm.support.units import VA_BLOCK_BYTES
from rmm_uvm.torch.embeddings.row_memory import RowMemory, runs_of

__all__ = ["allowed_bytes", "become", "chosen", "most_pinned_bytes"]

_STAY_FACTOR = 1.25  # a newcomer has to be so much hotter: moving costs as much as many reads
_FREE_FRACTION = 0.75  # of what the pool and others leave free, where there is no budget
_BUDGET_FRACTION = 15 / 16  # of a budget: others need to come and go


def chosen(
    heat: torch.Tensor, hot: set[int], room_blocks: int, most_moves: int | None = None
) -> set[int]:
    """Return the blocks that shall be on the device.

    Parameters
    ----------
    heat : torch.Tensor
        Lookups of each block, decayed; on the host.
    hot : set of int
        Blocks that are there now.
    room_blocks : int
        Most blocks that may be there.
    most_moves : int, optional
        Most blocks that come in one go; by default all.

    Examples
    --------
    >>> import torch
    >>> chosen(torch.tensor([5.0, 0.0, 9.0, 5.5]), {0}, room_blocks=2)
    {0, 2}
    """
    if room_blocks <= 0:
        return set()
    if room_blocks >= heat.numel() and most_moves is None:
        return set(range(heat.numel()))  # all fit, also what was never looked up
    room_blocks = min(room_blocks, heat.numel())
    score = heat.double().clone()
    if hot:
        score[torch.tensor(sorted(hot), device="cpu")] *= _STAY_FACTOR
    found = torch.topk(score, room_blocks)
    best = [
        block
        for block, value in zip(found.indices.tolist(), found.values.tolist(), strict=True)
        if value > 0 or block in hot
    ]
    coming = [block for block in best if block not in hot][:most_moves]
    staying = sorted(hot, key=lambda block: -float(score[block]))
    return {*staying[: room_blocks - len(coming)], *coming}


def become(memory: RowMemory, wanted: set[int]) -> int:
    """Have exactly these blocks on the device; return the bytes that were told to move."""
    leaving, coming = memory.pinned - wanted, wanted - memory.pinned
    for block, count in runs_of(leaving):
        memory.cool(block, count)
    for block, count in runs_of(coming):
        memory.warm(block, count)
    return (len(leaving) + len(coming)) * VA_BLOCK_BYTES


def allowed_bytes(memory: RowMemory, other_tables_bytes: int) -> int:
    """Return how much of a table may be on the device, where the user did not say.

    What a budget, or free device memory without one, has left for tables, shared by size.

    Parameters
    ----------
    memory : RowMemory
        Of the table.
    other_tables_bytes : int
        Size of the other tables of the same pool, with whom it is shared.
    """
    if memory.pool.managed_mr.residency.keeps_budget:
        room: float = most_pinned_bytes(memory)
    else:
        # What the pool holds is taken from what is free, though most of it may leave.
        free_bytes, total_bytes = memory.driver.memory()
        slab_bytes = memory.pool.managed_mr.slab_bytes
        tables_bytes = memory.nbytes + other_tables_bytes
        others_bytes = max(memory.pool.get_allocated_bytes() - tables_bytes, 0)
        room = max(min(free_bytes + slab_bytes, total_bytes) - others_bytes, 0) * _FREE_FRACTION
    share = memory.nbytes / (memory.nbytes + other_tables_bytes)
    most_bytes = int(room * share)
    return min(most_bytes, int(memory.blocks) * VA_BLOCK_BYTES)


def most_pinned_bytes(memory: RowMemory, others_bytes: int = 0) -> int:
    """Return how much a table may pin, whatever the user says: what is pinned binds no budget.

    Parameters
    ----------
    memory : RowMemory
        Of the table.
    others_bytes : int
        What other tables of the same pool have pinned.
    """
    kept = memory.pool.managed_mr.residency.residency()
    if kept is None:
        return int(memory.blocks) * VA_BLOCK_BYTES
    return max(int(kept["budget_bytes"] * _BUDGET_FRACTION) - others_bytes, 0)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs for comparing placements: those of the policies, and one that is hard on a pool."""

from __future__ import annotations

import functools
from collections.abc import Callable

from benchmarks.residency import policy_programs
from benchmarks.residency.policy_card import MIB, WAYS, Card, whole_blocks
from benchmarks.residency.policy_programs import RECORDED, ROUNDS

KIB = 1 << 10
# Of the peak: no placement has to grow, and growing is not what is compared.
SLAB_FACTOR = 1.5


def small_between_large(memory: Card, rounds: int = ROUNDS) -> None:
    """Make small results that stay between large ones that go, of other sizes in every round."""
    kept: list[int] = []
    for number in range(rounds):
        large = []
        for part in range(12):
            large.append(memory.make((6 * MIB) + (number * 5 + part) % 7 * 384 * KIB))
            kept.append(memory.make(64 * KIB))
        for handle in large:
            memory.read(handle)
            memory.free(handle)
        for handle in kept[::8]:
            memory.read(handle)
        while len(kept) > 72:
            memory.free(kept.pop(0))
    for handle in kept:
        memory.free(handle)


PROGRAMS: dict[str, Callable[[Card], None]] = {
    **policy_programs.PROGRAMS,
    "small between large": small_between_large,
}


@functools.cache
def peak_bytes(name: str) -> int:
    """Return the most bytes that a program has allocated at a time."""
    if name in RECORDED:
        return policy_programs.trace().peak_live_bytes
    roomy = Card(4096 * MIB, WAYS[0], 2048 * MIB)
    PROGRAMS[name](roomy)
    return roomy.mr.peak_bytes


def slab_bytes(name: str) -> int:
    """Return the size of the first slab."""
    return whole_blocks(peak_bytes(name) * SLAB_FACTOR)

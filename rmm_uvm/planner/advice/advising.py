# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Decides which settings a card needs, and why: pure functions over what replays saw.

No advice is slower than the defaults in its own replay. Where nothing is faster, the defaults are
the advice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from rmm_uvm.planner.outcome import Helps, Variant
from rmm_uvm.planner.request import DEFAULTS
from rmm_uvm.support.units import VA_BLOCK_BYTES, whole_blocks

__all__ = [
    "ENOUGH",
    "HOST_FRACTION",
    "INITIAL_FACTOR",
    "WORTH_SETTING",
    "AdviceFacts",
    "best",
    "default_sizes",
    "helps_most",
    "parts_needed",
    "pool_sizes",
    "room_bytes",
    "spread",
]

ENOUGH = 1.05
"""Slowdown up to which a workload counts as running as if it fitted."""

WORTH_SETTING = 0.97
"""A setting is advised if the program takes less than this part of the defaults' time."""

INITIAL_FACTOR = 1.1
"""First slab of a pool, over the peak."""

HOST_FRACTION = 0.9
"""The part of the host's memory that is used, as by a pool's default maximum."""

_PART_FRACTION = 0.9  # of the card for a part: pools break into pieces
_SLAB_LEFT_BYTES = 128 << 20  # what a new slab leaves free, or a sixteenth of the device


class AdviceFacts(NamedTuple):
    """The facts on which advice rests, sizes in bytes.

    Attributes
    ----------
    peak_bytes : int
        Most bytes allocated at a time.
    slab_bytes : int
        What the recorded pool took for them.
    capacity_bytes : int
        Managed capacity of the card.
    ipc_bytes : int
        IPC pool beside it; 0 for none.
    workers : int
        Processes of a host.
    enough_bytes : int or None
        Least capacity with which the workload runs as if it fitted; None if it does with none.
    splits : bool
        The input is better split.
    host_bytes : int or None
        Host memory for one process; None if it is not limited.
    working_set_bytes : int
        Most bytes touched in one window of time.
    third_tier_bytes : int
        What lies behind that memory; 0 for none.
    """

    peak_bytes: int
    slab_bytes: int
    capacity_bytes: int
    ipc_bytes: int
    workers: int
    enough_bytes: int | None
    splits: bool
    host_bytes: int | None = None
    working_set_bytes: int = 0
    third_tier_bytes: int = 0


def best(variants: Sequence[Variant]) -> Variant:
    """Return the variant to advise: the defaults, unless another is faster by three hundredths.

    Parameters
    ----------
    variants : sequence of Variant
        The defaults first. Those with a policy that cannot be set are passed over.
    """
    defaults = variants[0]
    able = [
        one
        for one in variants
        if one.predicted_seconds is not None and one.options.policy == DEFAULTS.policy
    ]
    if not able:
        return defaults
    fastest = min(able, key=lambda one: one.predicted_seconds or 0.0)
    if defaults.predicted_seconds is None:
        return fastest
    bound = defaults.predicted_seconds * WORTH_SETTING
    return fastest if (fastest.predicted_seconds or 0.0) < bound else defaults


def parts_needed(peak_bytes: int, capacity_bytes: int) -> int:
    """Return into how many parts an input is to be split so that each fits a card.

    Memory is taken to shrink with the part, and a tenth of the card to be lost to fragmentation.

    Examples
    --------
    >>> parts_needed(30 << 30, 16 << 30), parts_needed(10 << 30, 16 << 30)
    (3, 1)
    """
    return max(math.ceil(peak_bytes / (capacity_bytes * _PART_FRACTION)), 1)


def pool_sizes(facts: AdviceFacts) -> tuple[int, int]:
    """Return initial and maximum size of a pool for a workload on a card, bytes."""
    initial_bytes = min(_rounded_up(facts.peak_bytes * INITIAL_FACTOR), room_bytes(facts))
    maximum_bytes = max(initial_bytes + 2 * facts.peak_bytes, facts.slab_bytes)
    if facts.host_bytes is not None:
        behind_bytes = int(facts.host_bytes * HOST_FRACTION) + facts.third_tier_bytes
        backed_bytes = max(behind_bytes, facts.capacity_bytes)
        maximum_bytes = max(min(maximum_bytes, backed_bytes), initial_bytes)
    return initial_bytes, _rounded_up(maximum_bytes)


def room_bytes(facts: AdviceFacts) -> int:
    """Return what a slab, or a budget, may take of a card, bytes: page tables need some too."""
    left_bytes = min(_SLAB_LEFT_BYTES, facts.capacity_bytes // 16)
    return whole_blocks(facts.capacity_bytes - left_bytes)


def spread(peak_bytes: int, working_set_bytes: int) -> bool:
    """Return whether recorded addresses are so many that the peak does not tell what is needed.

    More is touched in one window then than is allocated at a time, and than the first slab of a
    pool for the peak: what was freed was not allocated again soon, which another pool may do.

    Examples
    --------
    >>> spread(60 << 10, 57 << 20), spread(448 << 20, 480 << 20)
    (True, False)
    """
    return working_set_bytes > peak_bytes * INITIAL_FACTOR


def default_sizes(facts: AdviceFacts) -> tuple[int, int]:
    """Return the sizes of a pool for which none are given, bytes.

    Half of a free card, and what the host can back: as `rmm_uvm.pool.sizing` has it, with room for
    a workload many times where the host is not known.
    """
    host_bytes = facts.host_bytes or 16 * facts.peak_bytes
    behind_bytes = int(host_bytes * HOST_FRACTION) + facts.third_tier_bytes
    maximum_bytes = max(behind_bytes, facts.capacity_bytes)
    return whole_blocks(facts.capacity_bytes / 2), _rounded_up(maximum_bytes)


def helps_most(cards: Sequence[tuple[int, float | None]]) -> Helps | None:
    """Return the step between neighbouring cards that saves most time; None if none saves any.

    Parameters
    ----------
    cards : sequence of (int, float or None)
        Bytes, ascending, and slowdown; None for running out of memory.

    Examples
    --------
    >>> helps_most([(16, 3.0), (24, 1.5), (40, 1.0), (80, 1.0)])
    Helps(from_bytes=16, to_bytes=24, from_slowdown=3.0, to_slowdown=1.5, enough_bytes=40)
    """
    enough = next((size for size, slow in cards if slow is not None and slow <= ENOUGH), None)
    steps = [
        (math.inf if low is None else low - high, smaller, larger, low, high)
        for (smaller, low), (larger, high) in itertools.pairwise(cards)
        if high is not None
    ]
    saved, smaller, larger, low, high = max(steps, default=(0.0, 0, 0, None, None))
    if saved < ENOUGH - 1:
        return None
    return Helps(smaller, larger, low, high, enough)


def _rounded_up(nbytes: float) -> int:
    return max(-(-int(nbytes) // VA_BLOCK_BYTES), 1) * VA_BLOCK_BYTES

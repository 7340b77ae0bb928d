# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What to set on a card, and why: pure functions over what replays saw.

No advice is slower than the defaults in its own replay. Where nothing is faster, the defaults are
the advice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from rmm_uvm.planner.capacities import BLOCK_BYTES, whole_blocks
from rmm_uvm.planner.outcome import Helps, Settings, Variant
from rmm_uvm.planner.request import DEFAULTS
from rmm_uvm.units import format_bytes

__all__ = [
    "ENOUGH",
    "WORTH_SETTING",
    "Facts",
    "best",
    "default_sizes",
    "helps_most",
    "parts_needed",
    "pool_sizes",
    "settings",
]

ENOUGH = 1.05
"""Slowdown up to which a workload counts as running as if it fitted."""

WORTH_SETTING = 0.99
"""Of the defaults' time: what saves less than that is no reason to set anything."""

_INITIAL_FACTOR = 1.1
_HOST_FRACTION = 0.9  # of the host's memory, as a pool's default maximum takes
_PART_FRACTION = 0.9  # of the card for a part: pools break into pieces
_MAXIMUM_REASON = (
    "the peak twice, beside the first slab, since pools break into pieces; a leak ends in "
    "MemoryError, and not with the host's memory"
)
_NOT_SIZED = "tried with the pool itself, others gain nothing over the defaults"
_SLAB_LEFT_BYTES = 128 << 20  # what a new slab leaves free, or a sixteenth of the device


class Facts(NamedTuple):
    """What advice is given on, sizes in bytes.

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
    """

    peak_bytes: int
    slab_bytes: int
    capacity_bytes: int
    ipc_bytes: int
    workers: int
    enough_bytes: int | None
    splits: bool
    host_bytes: int | None = None


def best(variants: Sequence[Variant]) -> Variant:
    """Return the variant to advise: the defaults, unless another is faster by a hundredth.

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


def pool_sizes(facts: Facts) -> tuple[int, int]:
    """Return initial and maximum size of a pool for a workload on a card, bytes."""
    left_bytes = min(_SLAB_LEFT_BYTES, facts.capacity_bytes // 16)
    room_bytes = whole_blocks(facts.capacity_bytes - left_bytes)
    initial_bytes = min(_rounded_up(facts.peak_bytes * _INITIAL_FACTOR), room_bytes)
    maximum_bytes = max(initial_bytes + 2 * facts.peak_bytes, facts.slab_bytes)
    if facts.host_bytes is not None:
        backed_bytes = max(int(facts.host_bytes * _HOST_FRACTION), facts.capacity_bytes)
        maximum_bytes = max(min(maximum_bytes, backed_bytes), initial_bytes)
    return initial_bytes, _rounded_up(maximum_bytes)


def default_sizes(facts: Facts) -> tuple[int, int]:
    """Return the sizes of a pool for which none are given, bytes.

    Half of a free card, and what the host can back: as `rmm_uvm.sizing` has it, with room for a
    workload many times where the host is not known.
    """
    host_bytes = facts.host_bytes or 16 * facts.peak_bytes
    maximum_bytes = max(int(host_bytes * _HOST_FRACTION), facts.capacity_bytes)
    return whole_blocks(facts.capacity_bytes / 2), _rounded_up(maximum_bytes)


def settings(facts: Facts, defaults: Variant, advised: Variant, *, sized: bool = True) -> Settings:
    """Return the settings for a card with their reasons.

    Parameters
    ----------
    facts : Facts
        Of workload and card.
    defaults, advised : Variant
        What runs there where nothing is set, and what is advised.
    sized : bool
        Whether sizes of the pool are part of the advice.
    """
    initial_bytes, maximum_bytes = pool_sizes(facts) if sized else (None, None)
    budget_bytes, budget_reason = _budget(facts, advised)
    threshold = advised.options.driver_prefetch_threshold
    changed = threshold != defaults.options.driver_prefetch_threshold
    parts = parts_needed(facts.peak_bytes, facts.capacity_bytes) if facts.splits else 1
    reasons = [("pool sizes", _NOT_SIZED)]
    if initial_bytes is not None:
        reasons = [
            ("initial_pool_size", _initial_reason(facts, initial_bytes)),
            ("maximum_pool_size", _MAXIMUM_REASON),
        ]
    reasons += [
        ("prefetch", _prefetch_reason(defaults, advised)),
        ("device budget", budget_reason),
    ]
    if facts.ipc_bytes:
        reasons.append(
            (
                "ipc_pool_size",
                f"{facts.workers} workers exchange results through cudaMalloc memory, which is "
                "taken from the managed capacity; no more than that is needed",
            )
        )
        reasons.append(("host_sharers", f"{facts.workers} workers take from one host's memory"))
    if changed:
        reasons.append(("uvm_perf_prefetch_threshold", _gain(defaults, advised)))
    if parts > 1:
        reasons.append(
            ("parts", "each fits, with a tenth of the card to spare, if memory shrinks with it")
        )
    return Settings(
        initial_pool_bytes=initial_bytes,
        maximum_pool_bytes=maximum_bytes,
        prefetch=advised.options.prefetch,
        ipc_pool_bytes=facts.ipc_bytes,
        host_sharers=facts.workers,
        driver_prefetch_threshold=threshold if changed else None,
        device_budget_bytes=budget_bytes,
        parts=parts,
        reasons=tuple(reasons),
    )


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


def _initial_reason(facts: Facts, initial_bytes: int) -> str:
    peak = f"the peak of {format_bytes(facts.peak_bytes)}"
    if initial_bytes < facts.peak_bytes:
        return "as much as the card holds, in one slab; the pool grows by what does not fit"
    if initial_bytes < facts.peak_bytes * _INITIAL_FACTOR:
        return f"{peak}, and all else that the card holds, in one slab: the pool need not grow"
    if initial_bytes < facts.capacity_bytes // 2:
        return f"{peak} and a tenth; the default, half of the card, would be filled for nothing"
    return f"{peak} and a tenth in one slab, on the device from the start: the pool need not grow"


def _budget(facts: Facts, advised: Variant) -> tuple[int, str]:
    if facts.enough_bytes is not None and facts.enough_bytes <= facts.capacity_bytes:
        return facts.enough_bytes, (
            f"with this much it takes at most {ENOUGH:.2f} times as long as with all; the rest of "
            "the card can serve others"
        )
    if advised.slowdown is None:
        return facts.capacity_bytes, "the whole card, and still it runs out of memory"
    return facts.capacity_bytes, (
        f"the whole card: it takes {advised.slowdown:.2f} times as long as if it fitted, and more "
        "with less"
    )


def _prefetch_reason(defaults: Variant, advised: Variant) -> str:
    if advised.options.prefetch != defaults.options.prefetch:
        return _gain(defaults, advised)
    if defaults.slowdown is not None and defaults.slowdown <= ENOUGH:
        return "the default: it runs as if it fitted"
    return "the default: replayed and tried, no other is faster by a hundredth"


def _gain(defaults: Variant, advised: Variant) -> str:
    before = "running out of memory"
    if defaults.slowdown is not None:
        before = f"{defaults.slowdown:.2f} times with the defaults"
    return (
        f"replayed: {advised.slowdown or 1.0:.2f} times as long as if it fitted, against {before}"
    )


def _rounded_up(nbytes: float) -> int:
    return max(-(-int(nbytes) // BLOCK_BYTES), 1) * BLOCK_BYTES

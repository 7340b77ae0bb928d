# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The settings for a card, each with what speaks for it: replays, and trials with the pool.

Pure functions. Does not cover which way to run is advised; see `rmm_uvm.planner.advice.advising`
and `settling`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm.planner.advice.advising import (
    ENOUGH,
    INITIAL_FACTOR,
    WORTH_SETTING,
    AdviceFacts,
    parts_needed,
    pool_sizes,
    spread,
)
from rmm_uvm.planner.advice.settling import Settled, Tried, cost
from rmm_uvm.planner.outcome import Settings, Variant
from rmm_uvm.planner.request import options_text
from rmm_uvm.report.words import clock_text
from rmm_uvm.support.settings import LEAST_BUDGET_BYTES
from rmm_uvm.support.units import format_bytes

__all__ = ["compared", "settings", "time_text", "work_text"]


def compared(seconds: float | None, usual_seconds: float | None) -> str:
    """Return the work of a way against that of the defaults; times that read alike are no reason.

    Parameters
    ----------
    seconds, usual_seconds : float or None
        Of driver work; None: it ran out of memory.

    Examples
    --------
    >>> compared(0.5, 2.0)
    'with the pool itself 0.500 s of driver work, against 2.0 s by default'
    >>> compared(None, 2.0)
    'with the pool itself running out of memory, against 2.0 s by default'
    >>> compared(0.0104, 0.01041)
    'with the pool itself as much driver work as by default'
    >>> compared(0.0105, 0.0114)
    'with the pool itself 8% less driver work than by default'
    """
    usual = time_text(usual_seconds)
    if seconds is None or usual_seconds is None or time_text(seconds) != usual:
        return f"with the pool itself {work_text(seconds)}, against {usual} by default"
    change = seconds / usual_seconds - 1 if usual_seconds > 0 else 0.0
    if abs(change) < 1 - WORTH_SETTING:
        return "with the pool itself as much driver work as by default"
    more = "less" if change < 0 else "more"
    return f"with the pool itself {abs(change):.0%} {more} driver work than by default"


def work_text(seconds: float | None) -> str:
    """Return a time of driver work, and what it is of."""
    return time_text(seconds) + " of driver work" * (seconds is not None)


def time_text(seconds: float | None) -> str:
    """Return a time of driver work; None: it ran out of memory."""
    return "running out of memory" if seconds is None else clock_text(seconds)


_MAXIMUM_REASON = (
    "the peak twice, beside the first slab, since pools break into pieces; a leak ends in "
    "MemoryError, and not with the host's memory"
)
# It gains the program nothing, and was not tried through the pool.
_NOT_IN_CALL = "no part of the call, add device_budget to keep to it"
_NOT_SIZED = "tried with the pool itself, others gain less than three hundredths over the defaults"
_THRESHOLD_HOW = (
    "root sets it for all programs when the kernel driver is loaded, while none uses the GPU: "
    "modprobe -r nvidia_uvm && modprobe nvidia_uvm uvm_perf_prefetch_threshold={threshold}"
)


def settings(
    facts: AdviceFacts, defaults: Variant, settled: Settled, replayed: Variant | None = None
) -> Settings:
    """Return the settings for a card with their reasons.

    Parameters
    ----------
    facts : AdviceFacts
        Of workload and card.
    defaults : Variant
        What runs there where nothing is set.
    settled : Settled
        What is advised, and what was tried before.
    replayed : Variant, optional
        What replays alone spoke for; by default what is advised.
    """
    advised, sized, told = settled
    initial_bytes, maximum_bytes = pool_sizes(facts) if sized else (None, None)
    enough_bytes, enough_reason = _enough(facts, settled)
    threshold = advised.options.driver_prefetch_threshold
    changed = threshold != defaults.options.driver_prefetch_threshold
    parts = parts_needed(facts.peak_bytes, facts.capacity_bytes) if facts.splits else 1
    reasons = [("pool sizes", _unsized_reason(facts, advised, told))]
    if initial_bytes is not None:
        reasons = [
            ("initial_pool_size", _initial_reason(facts, initial_bytes)),
            ("maximum_pool_size", _MAXIMUM_REASON),
        ]
    reasons += [
        ("prefetch", _prefetch_reason(defaults, settled, replayed or advised)),
        ("enough memory", enough_reason),
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
        how = _THRESHOLD_HOW.format(threshold=threshold)
        reasons.append(("uvm_perf_prefetch_threshold", f"{_gain(defaults, advised, told)}; {how}"))
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
        enough_bytes=enough_bytes,
        parts=parts,
        reasons=tuple(reasons),
    )


def _initial_reason(facts: AdviceFacts, initial_bytes: int) -> str:
    peak = f"the peak of {format_bytes(facts.peak_bytes)}"
    if initial_bytes < facts.peak_bytes:
        return "as much as the card holds, in one slab; the pool grows by what does not fit"
    if initial_bytes < facts.peak_bytes * INITIAL_FACTOR:
        return f"{peak}, and all else that the card holds, in one slab: the pool need not grow"
    if initial_bytes < facts.capacity_bytes // 2:
        return f"{peak} and a tenth; the default, half of the card, would be filled for nothing"
    return f"{peak} and a tenth in one slab, on the device from the start: the pool need not grow"


def _enough(facts: AdviceFacts, settled: Settled) -> tuple[int, str]:
    advised = settled.variant
    if settled.out_of_memory:
        return facts.capacity_bytes, "the whole card, and still it runs out of memory"
    least_bytes = min(LEAST_BUDGET_BYTES, facts.capacity_bytes)
    if facts.enough_bytes is not None and facts.enough_bytes < least_bytes:
        return least_bytes, f"the least that a budget can be; less would be enough; {_NOT_IN_CALL}"
    if facts.enough_bytes == facts.capacity_bytes:
        return facts.capacity_bytes, "the whole card: it runs as if it fitted, and less may not do"
    if facts.enough_bytes is not None and facts.enough_bytes < facts.capacity_bytes:
        return facts.enough_bytes, (
            f"with this much it takes at most {ENOUGH:.2f} times as long as with all; the rest of "
            f"the card can serve others; {_NOT_IN_CALL}"
        )
    if advised.slowdown is None:
        return facts.capacity_bytes, "the whole card, and still it runs out of memory"
    return facts.capacity_bytes, (
        f"the whole card: it takes {advised.slowdown:.2f} times as long as if it fitted, and more "
        "with less"
    )


def _unsized_reason(facts: AdviceFacts, advised: Variant, told: Sequence[Tried]) -> str:
    """Return why sizes of the pool are no part of the advice."""
    ways = [one for one in told if one.sized]
    if not told and spread(facts.peak_bytes, facts.working_set_bytes):
        touched, peak = format_bytes(facts.working_set_bytes), format_bytes(facts.peak_bytes)
        return (
            f"not tried, and more is touched in one window, {touched}, than the peak of {peak}: "
            "that says little of what is needed"
        )
    if not ways:
        return _NOT_SIZED
    if all(one.seconds is None for one in told):
        return "tried with the pool itself, it runs out of memory with others too"
    initial_bytes, maximum_bytes = pool_sizes(facts)
    usual = next((one for one in told if one.variant is advised and not one.sized), told[0])
    work = work_text(min(ways, key=cost).seconds)
    return (
        f"{_NOT_SIZED}: with {format_bytes(initial_bytes)} and {format_bytes(maximum_bytes)} "
        f"{work}, with the defaults {time_text(usual.seconds)}"
    )


def _prefetch_reason(defaults: Variant, settled: Settled, replayed: Variant) -> str:
    advised, told = settled.variant, settled.told
    if advised.options.prefetch != defaults.options.prefetch:
        return _gain(defaults, advised, told)
    if replayed is not advised:
        return _rejection(defaults, replayed, told)
    if defaults.slowdown is None:
        return "the default: every way that was replayed runs out of memory"
    if settled.out_of_memory:
        return "the default: tried with the pool itself, it runs out of memory in every way"
    if defaults.slowdown <= ENOUGH:
        return "the default: it runs as if it fitted"
    return "the default: replayed, no other is faster by three hundredths"


def _rejection(defaults: Variant, replayed: Variant, told: Sequence[Tried]) -> str:
    """Return why what was faster in a replay is not advised."""
    ways = [one for one in told if one.variant is replayed]
    worse = "not tried with the pool itself"
    if ways:
        worse = compared(min(ways, key=cost).seconds, told[0].seconds)
    return (
        f"the default: {options_text(replayed.options)} is faster only when replayed, "
        f"{_against(defaults, replayed)}; {worse}"
    )


def _gain(defaults: Variant, advised: Variant, told: Sequence[Tried]) -> str:
    said = f"replayed: {_against(defaults, advised)}"
    ways = [one for one in told if one.variant is advised]
    if not ways:
        return said
    return f"{said}; {compared(min(ways, key=cost).seconds, told[0].seconds)}"


def _against(defaults: Variant, other: Variant) -> str:
    before = "running out of memory"
    if defaults.slowdown is not None:
        before = f"{defaults.slowdown:.2f} times with the defaults"
    return f"{other.slowdown or 1.0:.2f} times as long as if it fitted, against {before}"

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Words for the troubles of a budget: the state, and the one thing to do about it.

Pure functions of what a budget counted. `rmm_uvm.watch` makes findings of them, and
`rmm_uvm.pool.budget_warnings` warns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from rmm_uvm.residency.statistics import SCORE_WINDOW, ResidencyStatistics, prediction_state
from rmm_uvm.support.units import format_bytes

__all__ = [
    "Lately",
    "Trouble",
    "lacking_neighbors",
    "prediction_off",
    "too_large",
    "waiting",
]


class Trouble(NamedTuple):
    """One sentence each, without a full stop."""

    message: str
    remedy: str


class Lately(Protocol):
    """The counts of a budget in the last seconds."""

    @property
    def seconds(self) -> float:
        """How many seconds."""

    @property
    def waited_seconds(self) -> float:
        """The time in which at least one request waited."""

    @property
    def room_seconds(self) -> float:
        """The part of that time until other data had left."""

    @property
    def came_bytes(self) -> int:
        """Brought in."""

    @property
    def left_bytes(self) -> int:
        """Moved away with a copy."""


def too_large(counts: ResidencyStatistics, total_bytes: int) -> Trouble:
    """Return the words for requests that no budget of this size can hold.

    Parameters
    ----------
    counts : ResidencyStatistics
        How the budget is kept; `too_large` > 0.
    total_bytes : int
        Device memory: no budget is larger, so that a larger request fits none of this device.
    """
    if counts.too_large == 1:
        asked = f"a request of {format_bytes(counts.too_large_bytes)} in whole blocks is"
    else:
        most = format_bytes(counts.too_large_bytes)
        asked = f"{counts.too_large} requests of up to {most} in whole blocks are"
    remedy = "work on less data at a time, or on a device with more memory"
    if counts.too_large_bytes <= total_bytes:
        least = format_bytes(counts.too_large_bytes)
        remedy = (
            f"give a device_budget of {least} or more where others leave that, or work on less "
            "data at a time"
        )
    return Trouble(
        f"{asked} larger than the budget of {format_bytes(counts.budget_bytes)}: what does not fit "
        "is read on the host, or comes by page faults",
        remedy,
    )


def prediction_off(counts: ResidencyStatistics) -> Trouble:
    """Return the words for a predictor that stopped being believed, and may be again by now."""
    name = counts.policy or "prediction"
    score = "none was seen lately"
    if counts.hit_rate is not None:
        uses = min(counts.predictions, SCORE_WINDOW)
        score = f"{counts.hit_rate * 100:.0f} % of the last {uses} uses were foreseen"
    state = prediction_state(counts)
    announce = "announce uses with rmm_uvm.touch"
    if counts.foresees:
        return Trouble(
            f'eviction "{name}" foresaw too little for a time, in which "lru" decided; now '
            f"{score}: {state}",
            f"none while it stays on; if it turns off again, {announce}",
        )
    return Trouble(
        f'eviction "{name}" foresees too little ({score}): {state}',
        f'{announce}, or give eviction="lru" if the program never repeats itself',
    )


def waiting(
    counts: ResidencyStatistics, lately: Lately, used_bytes: int, threshold: float
) -> Trouble:
    """Return the words for a program that waits much for its budget.

    Parameters
    ----------
    counts : ResidencyStatistics
        How the budget is kept, now.
    lately : Lately
        What was waited and moved.
    used_bytes : int
        What is allocated; 0 where it is not known.
    threshold : float
        Of the time, from which on it is told.
    """
    came = f"{format_bytes(lately.came_bytes)} came back"
    if used_bytes:
        came += (
            f", {lately.came_bytes / used_bytes:.1f} times the {format_bytes(used_bytes)} that are "
            "allocated"
        )
    for_room = lately.room_seconds > lately.waited_seconds / 2
    mostly = "for other live data to leave" if for_room else "for data to come"
    # A wait is told when it ends, and may have begun before.
    waited_seconds = min(lately.waited_seconds, lately.seconds)
    message = (
        f"the program waited {waited_seconds:.1f} s of the last {lately.seconds:.1f} s "
        f"because its data do not fit the budget of {format_bytes(counts.budget_bytes)} "
        f"(threshold {threshold:.0%}): {came}, and it waited mostly {mostly}"
    )
    return Trouble(message, ", or ".join([*_own_remedies(counts), "work on less data at a time"]))


def _own_remedies(counts: ResidencyStatistics) -> list[str]:
    """Return what helps a program that waits, what helps most first."""
    first = (
        "say what is used next (rmm_uvm.touch, rmm_uvm.prefetch) and what is not (rmm_uvm.evict)"
    )
    remedies = [first]
    others_bytes = (counts.unmanaged_bytes or 0) + counts.hidden_bytes
    if others_bytes > counts.budget_bytes:
        remedies.insert(0, f"free what others hold of the device, {format_bytes(others_bytes)}")
    if counts.policy in ("fifo", "lru"):
        remedies.append('let the order of uses be learnt (eviction="repeat")')
    elif not counts.foresees:
        remedies.append('try eviction="lru"')
    return remedies


def lacking_neighbors(
    neighbors: str | Iterable[int] | None, opened: Iterable[int], refused: Iterable[str]
) -> str:
    """Return in words which neighbours a budget asks for and does not get.

    Parameters
    ----------
    neighbors : "auto", iterable of int, or None
        What is asked for. "auto" takes what there is: it lacks something only without any.
    opened : iterable of int
        Ordinals of those that can be used.
    refused : iterable of str
        Why others cannot.

    Returns
    -------
    str
        Empty if nothing lacks.

    Examples
    --------
    >>> lacking_neighbors("auto", [], [])
    "neighbors='auto' finds none: there is no other device"
    >>> lacking_neighbors((1, 2), [1], ["no peer access between device 0 and device 2"])
    'not all of neighbors=[1, 2] can be used: no peer access between device 0 and device 2'
    """
    reasons, used = "; ".join(refused), list(opened)
    if neighbors == "auto":
        nobody = f"neighbors='auto' finds none: {reasons or 'there is no other device'}"
        return "" if used else nobody
    if not reasons or neighbors is None:
        return ""
    which = "not all of" if used else "none of"
    return f"{which} neighbors={list(neighbors)} can be used: {reasons}"

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a budget, in words: what is the case, and the one thing to do about it.

Pure functions of what a budget counted. `rmm_uvm.watch` makes findings of them, and
`rmm_uvm.pool.budget_warnings` warns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rmm_uvm.residency.statistics import SCORE_WINDOW, ResidencyStatistics, prediction_state
from rmm_uvm.support.units import format_bytes

__all__ = [
    "Trouble",
    "lacking_neighbors",
    "prediction_off",
    "too_large",
]


class Trouble(NamedTuple):
    """One sentence each, without a full stop."""

    message: str
    remedy: str


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

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Two questions answered in words: may the input stay whole, and may there be more of it.

Pure functions over what replays saw. Whoever splits the input, or trains on a part of the data,
does so because of the card's size; with managed memory it depends on what that costs.
"""

from __future__ import annotations

from typing import NamedTuple

from rmm_uvm.planner.advice import ENOUGH, parts_needed
from rmm_uvm.planner.outcome import Answer, Variant
from rmm_uvm.planner.result import StageResult
from rmm_uvm.report.words import plain_name
from rmm_uvm.units import format_bytes

__all__ = ["BEARABLE", "TOLERABLE", "Asked", "more_data", "no_card_is_enough", "splitting"]

TOLERABLE = 1.25
"""Slowdown up to which an answer is a plain yes."""

BEARABLE = 2.0
"""Slowdown up to which it is yes, at a price."""


class Asked(NamedTuple):
    """What the answers are about, sizes in bytes.

    Attributes
    ----------
    device_bytes, capacity_bytes : int
        The card, and what of it managed data can use.
    peak_bytes : int
        Most bytes allocated at a time.
    advised : Variant
        How the workload runs there with the advised settings.
    tolerable_bytes : int or None
        Least managed capacity with which it takes at most `TOLERABLE` times as long; None if none
        is enough.
    machine : str
        The machine that is simulated, with its label.
    host_bytes : int or None
        Host memory for one process; None if it is not limited.
    fullest : StageResult or None
        The stage that holds most; None where there are no stages.
    """

    device_bytes: int
    capacity_bytes: int
    peak_bytes: int
    advised: Variant
    tolerable_bytes: int | None
    machine: str
    host_bytes: int | None
    fullest: StageResult | None = None


def splitting(asked: Asked) -> Answer:
    """Answer "Can I avoid splitting my input?"."""
    question = "Can I avoid splitting my input?"
    card = _card(asked)
    peak, slowdown = format_bytes(asked.peak_bytes), asked.advised.slowdown
    factor = asked.peak_bytes / asked.capacity_bytes
    parts = parts_needed(asked.peak_bytes, asked.capacity_bytes)
    in_parts = f"In {parts} parts each would fit, if memory shrinks with the part."
    if parts == 1:
        in_parts = "Half of it would fit easily."
    failed = asked.advised.result.out_of_memory
    if slowdown is None:
        where = f" in {plain_name(failed.stage)}" if failed and failed.stage else ""
        wanted = f", where it asks for {format_bytes(failed.nbytes)}" if failed else ""
        if parts == 1:
            in_parts = "The card has room for it: the host needs more memory."
        return Answer(
            question,
            "no",
            f"No: on {card} the whole input runs out of memory{where}{wanted}; device and host "
            f"together hold too little. {in_parts}",
        )
    if factor <= 1 and slowdown <= ENOUGH:
        return Answer(
            question,
            "yes",
            f"Yes: on {card} all of it fits. At most {peak} are allocated at a time, "
            f"{factor:.2f} times what managed data can use there.",
        )
    result = asked.advised.result
    cost = (
        f"on {card} the whole input holds up to {peak}, {factor:.2f} times the managed capacity, "
        f"and takes {slowdown:.2f} times as long as if it fitted: "
        f"{format_bytes(result.to_device_bytes)} move to the device, "
        f"{format_bytes(result.evicted_bytes)} are evicted."
    )
    if slowdown <= TOLERABLE:
        whole = f" With cudaMalloc it would need {parts} parts." if factor > 1 else ""
        return Answer(question, "yes", f"Yes: {cost}{whole}")
    if slowdown <= BEARABLE:
        return Answer(question, "at a price", f"Yes, at a price: {cost} {in_parts}")
    return Answer(question, "no", f"Better not: {cost} {in_parts}")


def more_data(asked: Asked) -> Answer:
    """Answer "Can I train on more data?".

    So many times the data on a card are taken to run as these data do on a card so many times
    smaller. Without managed memory the data end where the card does.
    """
    question = "Can I train on more data?"
    card = _card(asked)
    plain = asked.capacity_bytes / asked.peak_bytes
    than = f"cudaMalloc memory ends at {plain:.2f} times at the latest"
    most = ""
    if asked.fullest is not None and asked.fullest.name:
        most = (
            f" The stage that holds most is {plain_name(asked.fullest.name, 60)}, with "
            f"{format_bytes(asked.fullest.peak_live_bytes)}."
        )
    now = "run out of memory"
    if asked.advised.slowdown is not None:
        now = f"take {asked.advised.slowdown:.2f} times as long as if they fitted"
    if asked.tolerable_bytes is None:
        return Answer(
            question,
            "no",
            f"No: on {card} already these data {now}, and {no_card_is_enough(asked.host_bytes)}; "
            f"{than}.{most}",
        )
    managed = asked.capacity_bytes / asked.tolerable_bytes
    limited = ""
    if asked.host_bytes is not None:
        # What left the device keeps its host page: in the end all data have one.
        host = asked.host_bytes / asked.peak_bytes
        if max(host, plain) < managed:
            managed = max(host, plain)
            limited = f", since the host has {format_bytes(asked.host_bytes)} for them"
    gain = managed / plain - 1
    if managed < 1:
        return Answer(
            question,
            "no",
            f"No: on {card} already these data {now}. {managed:.2f} times the data would take "
            f"{TOLERABLE:.2f} times as long{limited}; {than}"
            + (f", so that is still {_more(gain)}." if gain >= ENOUGH - 1 else ".")
            + most,
        )
    if gain < ENOUGH - 1:
        verdict = "Yes, as far as the card goes" if managed >= ENOUGH else "Hardly"
        return Answer(
            question,
            "yes" if managed >= ENOUGH else "no",
            f"{verdict}: on {card} {managed:.2f} times these data run within {TOLERABLE:.2f} times "
            f"the time for as many that fit{limited}; {than}.{most}",
        )
    return Answer(
        question,
        "yes",
        f"Yes: on {card} {managed:.2f} times these data run within {TOLERABLE:.2f} times the time "
        f"for as many that fit{limited}; {than}, so that is {_more(gain)}.{most}",
    )


def no_card_is_enough(host_bytes: int | None) -> str:
    """Return in words that no card does, as part of a sentence.

    Parameters
    ----------
    host_bytes : int or None
        Host memory for one process; None if it is not limited.
    """
    if host_bytes is None:
        return "no card is enough"
    return f"no card is enough with {format_bytes(host_bytes)} of host memory for a process"


def _more(gain: float) -> str:
    """Return by how much, in words; above twice as much, percentages are hard to read."""
    return f"{gain:.0%} more" if gain < 1 else f"{gain + 1:.1f} times as much"


def _card(asked: Asked) -> str:
    return f"a card of {format_bytes(asked.device_bytes)} in {asked.machine}"

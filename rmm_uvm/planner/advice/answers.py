# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Two questions answered in words: may the input stay whole, and may there be more of it.

Pure functions over what replays saw. Whoever splits the input, or trains on a part of the data,
does so because of the card's size; with managed memory it depends on what that costs.
"""

from __future__ import annotations

from typing import NamedTuple

from rmm_uvm.planner.advice.advising import ENOUGH, HOST_FRACTION, parts_needed
from rmm_uvm.planner.outcome import Answer, Variant
from rmm_uvm.planner.request import DEFAULTS, Options, options_text
from rmm_uvm.planner.workload.result import StageResult
from rmm_uvm.report.words import plain_name
from rmm_uvm.support.units import format_bytes

__all__ = ["BEARABLE", "TOLERABLE", "AnswerFacts", "more_data", "no_card_is_enough", "splitting"]

TOLERABLE = 1.25
"""Slowdown up to which an answer is a plain yes."""

BEARABLE = 2.0
"""Slowdown up to which it is yes, at a price."""


_SPREAD = (
    "That rests on a replay, which keeps the recorded addresses: they spread over more than is "
    "allocated at a time, and a pool that puts the data closer moves less."
)


class AnswerFacts(NamedTuple):
    """The facts on which the answers rest, sizes in bytes.

    Attributes
    ----------
    device_bytes, capacity_bytes : int
        The card, and what of it managed data can use.
    peak_bytes : int
        Most bytes allocated at a time.
    advised : Variant
        How the workload runs there with the advised settings.
    tolerable_bytes : int or None
        Least managed capacity with which it takes at most `TOLERABLE` times as long, run as
        `tolerable_options`; None if none is enough.
    machine : str
        The machine that is simulated, with its label.
    host_bytes : int or None
        Host memory for one process; None if it is not limited.
    fullest : StageResult or None
        The stage that holds most; None where there are no stages.
    pool_fails : bool
        Tried through RMM's pool, it runs out of memory there in every way.
    defaults : Variant or None
        How it runs there with the default settings; None where those are advised.
    tolerable_options : Options
        The way to run that `tolerable_bytes` is of.
    third_tier_bytes : int
        What lies behind the host's memory; 0 for none.
    """

    device_bytes: int
    capacity_bytes: int
    peak_bytes: int
    advised: Variant
    tolerable_bytes: int | None
    machine: str
    host_bytes: int | None
    fullest: StageResult | None = None
    pool_fails: bool = False
    defaults: Variant | None = None
    tolerable_options: Options = DEFAULTS
    third_tier_bytes: int = 0


def splitting(asked: AnswerFacts) -> Answer:
    """Answer "Can I avoid splitting my input?"."""
    question = "Can I avoid splitting my input?"
    card = _card(asked, asked.advised.options)
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
            in_parts = (
                "The card has room for all that is allocated at a time; what was freed, or is used "
                "by the CPU, takes memory beside it: the host needs more."
            )
        return Answer(
            question,
            "no",
            f"No: on {card} the whole input runs out of memory{where}{wanted}; device and host "
            f"together hold too little. {in_parts}",
        )
    if asked.pool_fails:
        return Answer(question, "no", f"No: on {card} {_in_pieces(asked)} {in_parts}")
    if factor <= 1 and slowdown <= ENOUGH:
        return Answer(
            question,
            "yes",
            f"Yes: on {card} all of it fits. At most {peak} are allocated at a time, "
            f"{factor:.2f} times what managed data can use there.{_by_default(asked)}",
        )
    result = asked.advised.result
    holds = (
        f"the whole input holds up to {peak}, {factor:.2f} times the managed capacity, and takes"
    )
    if factor <= 1:
        # More parts would not help: it is not the amount of data that moves them.
        holds = f"the whole input holds up to {peak}, which would fit, but replayed it takes"
        in_parts = _SPREAD
    cost = (
        f"on {card} {holds} {slowdown:.2f} times as long as if it fitted: "
        f"{format_bytes(result.to_device_bytes)} move to the device, "
        f"{format_bytes(result.evicted_bytes)} are evicted.{_by_default(asked)}"
    )
    if slowdown <= TOLERABLE:
        whole = f" With cudaMalloc it would need {parts} parts." if factor > 1 else f" {_SPREAD}"
        return Answer(question, "yes", f"Yes: {cost}{whole}")
    if slowdown <= BEARABLE:
        return Answer(question, "at a price", f"Yes, at a price: {cost} {in_parts}")
    return Answer(question, "no", f"Better not: {cost} {in_parts}")


def _has(asked: AnswerFacts) -> str:
    """Return what there is for data that do not fit, in words."""
    bytes_there = (asked.host_bytes or 0) + asked.third_tier_bytes
    who = "host and third tier have" if asked.third_tier_bytes else "the host has"
    return f"{who} {format_bytes(bytes_there)}"


def _in_pieces(asked: AnswerFacts) -> str:
    """Return why RMM's pool runs out of memory where a replay does not, in two sentences."""
    factor = asked.peak_bytes / asked.capacity_bytes
    held = (
        f"it runs in a replay only. Up to {format_bytes(asked.peak_bytes)} are allocated at a "
        f"time, {factor:.2f} times the managed capacity"
    )
    pool = "RMM's pool, whose memory breaks into pieces,"
    host = None if asked.host_bytes is None else format_bytes(asked.host_bytes)
    if factor > 1:
        rest = "" if host is None else f", and {_has(asked)} for what does not fit"
        return f"{held}; {pool} runs out of it{rest}."
    # It is not what is allocated that lacks room, and nobody is to look for that on the host.
    most = ""
    if host is not None:
        most = f", the larger of the card and {HOST_FRACTION} times the host's {host}"
    more = "a larger card" if host is None else "a larger card, or more host memory than that,"
    return f"{held}, which would fit; {pool} takes more than its maximum{most}: {more} would do."


def more_data(asked: AnswerFacts) -> Answer:
    """Answer "Can I train on more data?".

    So many times the data on a card are taken to run as these data do on a card so many times
    smaller. Without managed memory the data end where the card does.
    """
    question = "Can I train on more data?"
    card = _card(asked, asked.tolerable_options)
    plain = asked.capacity_bytes / asked.peak_bytes
    than = f"cudaMalloc memory ends at {plain:.2f} times at the latest"
    most = ""
    if asked.fullest is not None and asked.fullest.name:
        most = (
            f" The stage that holds most is {plain_name(asked.fullest.name, 60)}, with "
            f"{format_bytes(asked.fullest.peak_live_bytes)}."
        )
    if (asked.tolerable_bytes or 0) > asked.peak_bytes * ENOUGH:
        most = f" {_SPREAD}{most}"
    now = "run out of memory"
    if asked.advised.slowdown is not None:
        now = f"take {asked.advised.slowdown:.2f} times as long as if they fitted"
    if asked.pool_fails:
        return Answer(
            question,
            "no",
            f"No: on {card} already these data run out of memory in RMM's pool; {than}.{most}",
        )
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
        host = (asked.host_bytes + asked.third_tier_bytes) / asked.peak_bytes
        if max(host, plain) < managed:
            managed = max(host, plain)
            limited = f", since {_has(asked)} for them"
    gain = managed / plain - 1
    if managed < 1 and asked.capacity_bytes >= asked.peak_bytes:
        # These data would fit: no less of them is known to do better.
        return Answer(question, "no", f"No: on {card} already these data {now}; {than}.{most}")
    if managed < 1:
        return Answer(
            question,
            "no",
            f"No: on {card} already these data {now}. {managed:.2f} times the data would take "
            f"{TOLERABLE:.2f} times as long{limited}; {than}"
            + (f", so that is still {_more(gain)}." if gain >= ENOUGH - 1 else ".")
            + most,
        )
    if managed < ENOUGH and gain < ENOUGH - 1:
        kept = "these data" if round(managed, 2) <= 1 else f"{managed:.2f} times these data"
        would = f"would take more than {TOLERABLE:.2f} times as long as with room for all of it"
        if limited:
            would = f"has no room{limited}"
        return Answer(question, "no", f"Hardly: on {card} more than {kept} {would}; {than}.{most}")
    more = f", so that is {_more(gain)}" if gain >= ENOUGH - 1 else ""
    return Answer(
        question,
        "yes",
        f"Yes{'' if more else ', as far as the card goes'}: on {card} up to {managed:.2f} times "
        f"these data take at most {TOLERABLE:.2f} times as long as with room for all of them"
        f"{limited}; {than}{more}.{most}",
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


def _card(asked: AnswerFacts, options: Options) -> str:
    """Return the card, and how the workload is run there unless that is the default."""
    way = "" if options == DEFAULTS else f", with {options_text(options)},"
    return f"a card of {format_bytes(asked.device_bytes)} in {asked.machine}{way}"


def _by_default(asked: AnswerFacts) -> str:
    """Return what the default settings come to where others are advised."""
    if asked.defaults is None:
        return ""
    if asked.defaults.slowdown is None:
        return " With the default settings it runs out of memory."
    return f" With the default settings it takes {asked.defaults.slowdown:.2f} times as long."

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finds what would have helped a run: its recording, done again in other ways.

Pure but for what tries. Each remedy that saves enough is a finding, with the times that say so.
Lines and what they allocate are found by `rmm_uvm.planner.advice.line_hints`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from rmm_uvm.planner.advice.advising import WORTH_SETTING, AdviceFacts, default_sizes, parts_needed
from rmm_uvm.planner.advice.announced import Moved
from rmm_uvm.planner.advice.line_hints import LineHint
from rmm_uvm.planner.outcome import AnnouncedWay
from rmm_uvm.recording.finding import Finding
from rmm_uvm.report.words import clock_text
from rmm_uvm.residency.policies import DEFAULT_POLICY, POLICIES
from rmm_uvm.support.settings import LEAST_BUDGET_BYTES, PREFETCH_MODES, PrefetchMode
from rmm_uvm.support.units import format_bytes, whole_blocks

__all__ = ["MOST_REMEDIES", "AsItRan", "Tries", "remedies"]

MOST_REMEDIES = 3
"""As many are told, those that save most first; of hints at lines, the best is among them."""

_TOUCH = "announce what kernels use next: rmm_uvm.touch"


class AsItRan(NamedTuple):
    """A run, and how it kept its memory. Sizes in bytes.

    Attributes
    ----------
    device_id : int
        CUDA ordinal.
    capacity_bytes : int
        Managed capacity of the card.
    peak_bytes : int
        Most bytes allocated at a time.
    slab_bytes : int
        What the pool took for them.
    prefetch : str
        When allocations were prefetched.
    budget_bytes : int or None
        The budget; None for none.
    eviction : str
        Its policy.
    announced : bool
        The program announced its uses.
    grows : bool
        What is allocated grew until the end: less data at a time would not help.
    compute_seconds : float
        What kernels take with room for everything.
    seconds : float
        When it ended, since its monitor began.
    machine : str
        The model of the card, with its label.
    others_bytes : int
        What others hold of the card.
    hints : tuple of LineHint
        Those that the program could give at its lines.
    """

    device_id: int
    capacity_bytes: int
    peak_bytes: int
    slab_bytes: int
    prefetch: PrefetchMode
    budget_bytes: int | None
    eviction: str
    announced: bool
    grows: bool
    compute_seconds: float
    seconds: float
    machine: str
    others_bytes: int = 0
    hints: tuple[LineHint, ...] = ()


class Tries(Protocol):
    """Does a run again: `rmm_uvm.planner.trials.pool_trial.PoolTrial.announced`."""

    def __call__(
        self,
        capacity_bytes: int,
        host_bytes: int | None,
        way: AnnouncedWay,
        compute_seconds: float,
        *,
        announces: bool,
        hint: LineHint | None = None,
    ) -> Moved | None:
        """Return what it takes; None for running out of memory."""


class _Tried(NamedTuple):
    """One remedy: what to write, and what it comes to."""

    what: str
    seconds: float
    moved_bytes: int = 0
    parts: int = 1  # of the data, each of which fits
    at_line: bool = False  # a hint at one line


def remedies(ran: AsItRan, tries: Tries) -> tuple[Finding, ...]:
    """Return what would have helped, as findings: those that save three hundredths of the time.

    Parameters
    ----------
    ran : AsItRan
        The run.
    tries : callable
        Does it again on a model.

    Returns
    -------
    tuple of Finding
        Of kind "replayed", what saves most first. Their value is the time of the run over that with
        the remedy, both of the model.
    """
    facts = AdviceFacts(
        peak_bytes=ran.peak_bytes,
        slab_bytes=ran.slab_bytes,
        capacity_bytes=ran.capacity_bytes,
        ipc_bytes=0,
        workers=1,
        enough_bytes=None,
        splits=False,
    )
    usual = AnnouncedWay(ran.prefetch, None, None, *default_sizes(facts), sized=False)
    if ran.budget_bytes is not None:
        usual = dataclasses.replace(usual, budget_bytes=ran.budget_bytes, eviction=ran.eviction)

    def tried(
        what: str, way: AnnouncedWay, *, announces: bool, hint: LineHint | None = None
    ) -> _Tried | None:
        given = (ran.capacity_bytes, None, way, ran.compute_seconds)
        moved = tries(*given, announces=announces, hint=hint)
        if moved is None:
            return None
        moved_bytes = moved.to_device_bytes + moved.to_host_bytes
        seconds = ran.compute_seconds + moved.seconds
        return _Tried(what, seconds, moved_bytes, at_line=hint is not None)

    as_it_ran = tried("", usual, announces=ran.announced)
    if as_it_ran is None or as_it_ran.seconds <= ran.compute_seconds / WORTH_SETTING:
        return ()  # nothing is to be saved
    if not as_it_ran.moved_bytes:
        return ()  # it fits
    found = [
        each
        for what, way, announces in _ways(ran, usual)
        if (each := tried(what, way, announces=announces)) is not None
    ]
    for hint in ran.hints:
        if hint.hint != "touch" or not ran.announced:
            each = tried(hint.what, usual, announces=ran.announced, hint=hint)
            found += [each] if each is not None else []
    parts = parts_needed(ran.peak_bytes, ran.capacity_bytes)
    if parts > 1 and not ran.grows:
        found.append(_Tried(f"process the data in {parts} parts", ran.compute_seconds, parts=parts))
    worth = [each for each in found if each.seconds < as_it_ran.seconds * WORTH_SETTING]
    # Parts last, however much they save: nothing else asks for as much of the program.
    worth.sort(key=lambda each: (each.parts, each.seconds))
    best = next((each for each in worth if each.at_line), None)
    if best is not None:  # what asks for more has to save more
        worth = [each for each in worth if each.what != _TOUCH or _saves(each, best)]
    told = worth[:MOST_REMEDIES]
    if best is not None and best not in told:
        told[-1] = best
    return tuple(_finding(ran, each, as_it_ran) for each in told)


def _saves(one: _Tried, other: _Tried) -> bool:
    return one.seconds < other.seconds * WORTH_SETTING


def _ways(ran: AsItRan, usual: AnnouncedWay) -> Iterator[tuple[str, AnnouncedWay, bool]]:
    """Yield what to write, how the run is done again with it, and whether it announces uses."""
    room_bytes = whole_blocks(max(ran.capacity_bytes - ran.others_bytes, 0) * 15 / 16)
    budget_bytes = ran.budget_bytes or room_bytes
    can_keep = budget_bytes >= LEAST_BUDGET_BYTES
    kept = dataclasses.replace(usual, budget_bytes=budget_bytes, eviction=DEFAULT_POLICY)
    if ran.budget_bytes is None and can_keep:
        yield 'keep a budget: device_budget="auto"', kept, ran.announced
        if not ran.announced:
            yield f'keep a budget, device_budget="auto", and {_TOUCH}', kept, True
    elif not ran.announced and can_keep:
        yield _TOUCH, usual, True
    if ran.budget_bytes is not None and ran.budget_bytes < room_bytes:
        larger = dataclasses.replace(usual, budget_bytes=room_bytes)
        yield 'keep a larger budget: device_budget="auto"', larger, ran.announced
    for mode in PREFETCH_MODES:
        if mode != ran.prefetch:
            way = dataclasses.replace(usual, prefetch=mode)
            yield f'prefetch="{mode}"', way, ran.announced
    for policy in POLICIES:
        if ran.budget_bytes is not None and policy != ran.eviction:
            way = dataclasses.replace(usual, eviction=policy)
            yield f'eviction="{policy}"', way, ran.announced


def _finding(ran: AsItRan, with_it: _Tried, as_it_ran: _Tried) -> Finding:
    before, after = clock_text(as_it_ran.seconds), clock_text(with_it.seconds)
    message = (
        f"done again on a model ({ran.machine}) it takes {after} in place of {before}, and moves "
        f"{format_bytes(with_it.moved_bytes)} in place of {format_bytes(as_it_ran.moved_bytes)}"
    )
    if with_it.parts > 1:
        message = (
            f"each would fit if memory shrinks with the part, and nothing would move: {after} of "
            f"computing, where the run takes {before} on a model ({ran.machine})"
        )
    return Finding(
        kind="replayed",
        device_id=ran.device_id,
        time_seconds=ran.seconds,
        value=as_it_ran.seconds / with_it.seconds,
        threshold=1 / WORTH_SETTING,
        message=message,
        remedy=with_it.what,
    )

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What would have helped a run: its recording, done again in other ways on a model of its card.

Pure but for what tries. Each remedy that saves enough is a finding, with the times that say so. It
does not know of lines; see `rmm_uvm.report.by_line`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from rmm_uvm.planner.advice.advising import WORTH_SETTING, AdviceFacts, default_sizes, parts_needed
from rmm_uvm.planner.advice.announced import Moved
from rmm_uvm.planner.outcome import AnnouncedWay
from rmm_uvm.recording.finding import Finding
from rmm_uvm.report.words import clock_text
from rmm_uvm.residency.policies import DEFAULT_POLICY, POLICIES
from rmm_uvm.support.settings import LEAST_BUDGET_BYTES, PREFETCH_MODES, PrefetchMode
from rmm_uvm.support.units import format_bytes, whole_blocks

__all__ = ["MOST_REMEDIES", "AsItRan", "Tries", "remedies"]

MOST_REMEDIES = 3
"""As many are told, those that save most first."""


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


class Tries(Protocol):
    """What does a run again: `rmm_uvm.planner.trials.pool_trial.PoolTrial.announced`."""

    def __call__(
        self,
        capacity_bytes: int,
        host_bytes: int | None,
        way: AnnouncedWay,
        compute_seconds: float,
        *,
        announces: bool,
    ) -> Moved | None:
        """Return what it takes; None for running out of memory."""


class _Tried(NamedTuple):
    """One remedy: what to write, and what it comes to."""

    what: str
    seconds: float
    moved_bytes: int = 0
    parts: int = 1  # of the data, each of which fits


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

    def tried(what: str, way: AnnouncedWay, *, announces: bool) -> _Tried | None:
        moved = tries(ran.capacity_bytes, None, way, ran.compute_seconds, announces=announces)
        if moved is None:
            return None
        moved_bytes = moved.to_device_bytes + moved.to_host_bytes
        return _Tried(what, ran.compute_seconds + moved.seconds, moved_bytes)

    as_it_ran = tried("", usual, announces=ran.announced)
    if as_it_ran is None or as_it_ran.seconds <= ran.compute_seconds / WORTH_SETTING:
        return ()  # nothing is to be saved
    found = [
        each
        for what, way, announces in _ways(ran, usual)
        if (each := tried(what, way, announces=announces)) is not None
    ]
    parts = parts_needed(ran.peak_bytes, ran.capacity_bytes)
    if parts > 1 and not ran.grows:
        found.append(_Tried(f"process the data in {parts} parts", ran.compute_seconds, parts=parts))
    worth = [each for each in found if each.seconds < as_it_ran.seconds * WORTH_SETTING]
    # Parts last, however much they save: nothing else asks for as much of the program.
    worth.sort(key=lambda each: (each.parts, each.seconds))
    return tuple(_finding(ran, each, as_it_ran) for each in worth[:MOST_REMEDIES])


def _ways(ran: AsItRan, usual: AnnouncedWay) -> Iterator[tuple[str, AnnouncedWay, bool]]:
    """Yield what to write, how the run is done again with it, and whether it announces uses."""
    budget_bytes = ran.budget_bytes or whole_blocks(ran.capacity_bytes * 15 / 16)
    can_keep = budget_bytes >= LEAST_BUDGET_BYTES
    touch = "announce what kernels use next: rmm_uvm.touch"
    kept = dataclasses.replace(usual, budget_bytes=budget_bytes, eviction=DEFAULT_POLICY)
    if ran.budget_bytes is None and can_keep:
        yield 'keep a budget: device_budget="auto"', kept, ran.announced
        if not ran.announced:
            yield f'keep a budget, device_budget="auto", and {touch}', kept, True
    elif not ran.announced and can_keep:
        yield touch, usual, True
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

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The statistics of a budget: counts and levels as one value, and as text.

`rmm_uvm.residency_statistics` reads them from a pool.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from rmm_uvm.residency.policies import SIMPLE_POLICIES
from rmm_uvm.support.units import format_bytes

__all__ = ["SCORE_WINDOW", "ResidencyStatistics", "prediction_state"]

SCORE_WINDOW: Final = 256
"""Uses that the score of a predictor looks back on, as in C++."""
_LEAST_SEEN: Final = 16  # uses, before a predictor is believed, as in C++
_ON_ABOVE: Final = 0.6  # hit rate, likewise
_EMPTY: Final[dict[str, Any]] = {"int": 0, "str": "", "bool": False}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResidencyStatistics:
    """Counts since the pool was made, and where things stand; printing it explains.

    Parameters
    ----------
    budget_bytes : int
        Managed bytes that are kept on the device: now, where the budget follows others.
    budget_changes : int
        Times that it followed them.
    unmanaged_bytes : int or None
        Where it follows, what the driver tells that all processes hold, this one too, of memory
        that is not managed. None where it does not tell.
    hidden_bytes : int
        What others hold beside that, as far as free memory shows it.
    sharers : int
        Other budgets that follow, with which this one shares the device: of other processes and
        other pools, as they told on the board.
    resident_bytes, peak_resident_bytes : int
        On the device now, and at most, as far as our own calls go: on a GPU pages that kernels
        fault in come on top until they are found.
    overshoot_bytes, peak_overshoot_bytes : int or None
        Those pages, until they are found: on the device now beside `resident_bytes`, and at most,
        estimated from the counters of the driver. A lower estimate while calls are under way, and
        where memory that had left is handed out anew. None where bytes are not counted.
    faulted_bytes : int or None
        That kernels faulted in in all: at least. None where bytes are not counted.
    faults_unknown : str
        Why bytes are not counted; empty where they are.
    found_bytes, looks : int
        Of what faulted in, in whole blocks of 2 MiB: what was found afterwards, counts under the
        budget since, and had others leave; and how often it was looked for.
    finds_none : str
        Why it is not looked for, so that what faults in stays beside the budget; empty where it is.
    pinned_bytes : int
        Of blocks that stay where they are.
    evicted_bytes : int
        Moved to the host, or to another device, with their contents.
    uncopied_bytes : int
        Of these, what the host had kept a copy of: nothing was copied (`Budget.keep_copies`).
    kept_copy_bytes : int
        On the device now, and of these the host keeps a copy.
    copied_early_bytes : int
        Copied to the host before they had to leave, so that nothing is copied then.
    neighbor_bytes : int
        Of the evicted, to another device (`Budget.neighbors`).
    harvested_bytes, peak_harvested_bytes : int
        On other devices now, and at most, in blocks of 2 MiB.
    from_neighbor_bytes : int
        Fetched from other devices.
    in_place_bytes : int
        Of announced uses, on other devices, through mappings.
    copied_beside_bytes : int
        Of what lies there, copied to the host beforehand.
    staged_bytes : int
        Fetched from the host by way of another device.
    given_back_bytes, given_back_at_once_bytes : int
        Left another device because its owner needs the memory, and of these without a copy.
    held_back : int
        Times that blocks left to the host because the neighbours were busy.
    reclaims : int
        Times that other processes held what was needed here.
    reclaim_wait_seconds : float
        What was waited until they had left it.
    dropped_bytes : int
        Dead, and discarded in place of being copied.
    fetched_bytes : int
        Brought in for a use that waited. What was there already counts once, also where it is asked
        for again since something else moved pages.
    renewed_bytes : int
        Made usable for a new allocation without a copy.
    undiscarded_bytes, undiscarded_copied_bytes : int
        Dead blocks that were handed out while work before their free was under way, so that their
        contents could not be discarded; and of these, not on the device, so that they were copied.
    fetched_ahead_bytes, ahead_used_bytes : int
        Brought in before their use, and of these used before they left again.
    ahead_bytes : int
        How far ahead is fetched now: `Budget.ahead_bytes`, or as far as was learnt.
    wanted_bytes, present_bytes : int
        Of blocks that a use was announced of, and of these on the device already. Neither counts
        while uses are passed over, see docs/use/training.md.
    eviction_calls : int
        Prefetches to the host, or to another device.
    waits : int
        Uses that waited for a call about the same block.
    waited_seconds : float
        The time in which at least one request waited for data to come or for room, while the pool
        was larger than the budget. What a stream waits for is not counted: that is where migrations
        go by libcuda.
    waited_for_room_seconds : float
        Of that, until other live data had left.
    over_budget : int
        Times that no block could leave: all were pinned or wanted.
    too_large, too_large_bytes : int
        Requests larger than the budget, and the largest of them, in whole blocks of 2 MiB.
    host_read_bytes : int
        Of those, bytes that kernels read on the host, through mappings. What else of them did not
        fit was left to page faults.
    unfenced_frees : int
        Frees that were not fenced: while all slabs fit the budget none is, and their blocks are
        copied and not dropped until they are used anew.
    failed_calls : int
        Driver calls that failed. Nothing was lost.
    last_failure : str
        The latest of those; empty if there was none.
    predicted, predictions : int
        Of the last uses, at most `SCORE_WINDOW`: those that came as predicted, and all.
    foresees : bool
        Whether the predictor is believed now.
    switched_off : int
        How often it stopped being believed.
    policy : str
        One of `rmm_uvm.residency.POLICIES`.

    Examples
    --------
    >>> import rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    >>> print(rmm_uvm.residency_statistics(mr))
    on the device  0 B of a budget of 32.00 MiB, at most 0 B
    left           0 B moved to the host in 0 calls, 0 B dropped (dead)
    came           0 B for uses that waited, 0 B ahead of their use, 0 B new without a copy
    faulted in     nothing beside the budget
    announced      nothing
    predictor      nothing was predicted yet
    """

    budget_bytes: int
    resident_bytes: int
    peak_resident_bytes: int
    pinned_bytes: int
    evicted_bytes: int
    dropped_bytes: int
    fetched_bytes: int
    renewed_bytes: int
    fetched_ahead_bytes: int
    ahead_used_bytes: int
    wanted_bytes: int
    present_bytes: int
    eviction_calls: int
    waits: int
    over_budget: int
    too_large: int
    too_large_bytes: int
    unfenced_frees: int
    failed_calls: int
    last_failure: str
    predicted: int
    predictions: int
    foresees: bool
    switched_off: int
    policy: str = ""
    overshoot_bytes: int | None = None
    peak_overshoot_bytes: int | None = None
    faulted_bytes: int | None = None
    faults_unknown: str = ""
    host_read_bytes: int = 0
    found_bytes: int = 0
    looks: int = 0
    finds_none: str = ""
    ahead_bytes: int = 0
    uncopied_bytes: int = 0
    kept_copy_bytes: int = 0
    copied_early_bytes: int = 0
    neighbor_bytes: int = 0
    harvested_bytes: int = 0
    peak_harvested_bytes: int = 0
    from_neighbor_bytes: int = 0
    in_place_bytes: int = 0
    copied_beside_bytes: int = 0
    staged_bytes: int = 0
    given_back_bytes: int = 0
    given_back_at_once_bytes: int = 0
    held_back: int = 0
    reclaims: int = 0
    reclaim_wait_seconds: float = 0.0
    undiscarded_bytes: int = 0
    undiscarded_copied_bytes: int = 0
    budget_changes: int = 0
    unmanaged_bytes: int | None = 0
    hidden_bytes: int = 0
    sharers: int = 0
    waited_seconds: float = 0.0
    waited_for_room_seconds: float = 0.0

    @classmethod
    def of_none(cls) -> ResidencyStatistics:
        """Return the statistics where there is no pool: nothing was done, and nothing is there.

        Examples
        --------
        >>> ResidencyStatistics.of_none().evicted_bytes
        0
        """
        needed = (each for each in dataclasses.fields(cls) if each.default is dataclasses.MISSING)
        return cls(**{each.name: _EMPTY[str(each.type)] for each in needed})

    @property
    def hit_rate(self) -> float | None:
        """Share of the last uses that came as predicted, 0 to 1; None while nothing was seen."""
        return self.predicted / self.predictions if self.predictions else None

    @property
    def present_rate(self) -> float | None:
        """Share of announced bytes that were on the device, 0 to 1; None if nothing was."""
        return self.present_bytes / self.wanted_bytes if self.wanted_bytes else None

    @property
    def overshoot_fraction(self) -> float | None:
        """The most that faulted in beside the budget, over the budget; None where not known."""
        if self.peak_overshoot_bytes is None or not self.budget_bytes:
            return None
        return self.peak_overshoot_bytes / self.budget_bytes

    def __str__(self) -> str:
        return "\n".join(f"{name:<15}{text}" for name, text in _rows(self))


def _copied(s: ResidencyStatistics) -> str:
    if not s.undiscarded_copied_bytes:
        return ""
    return f", {format_bytes(s.undiscarded_copied_bytes)} new with a copy: their stream was busy"


def _rows(s: ResidencyStatistics) -> list[tuple[str, str]]:
    size = format_bytes
    pinned = f", {size(s.pinned_bytes)} pinned" if s.pinned_bytes else ""
    rows = [
        (
            "on the device",
            f"{size(s.resident_bytes)} of a budget of {size(s.budget_bytes)}, at most "
            f"{size(s.peak_resident_bytes)}{pinned}",
        ),
        *_others(s),
        (
            "left",
            f"{_moved(s)} in {_counted(s.eviction_calls, 'call')}, "
            f"{size(s.dropped_bytes)} dropped (dead)",
        ),
        (
            "came",
            f"{size(s.fetched_bytes)} for uses that waited, {size(s.fetched_ahead_bytes)} ahead of "
            f"their use{_used_ahead(s)}, {size(s.renewed_bytes)} new without a copy{_copied(s)}",
        ),
        *_waited(s),
        *_beside(s),
        ("faulted in", _faulted(s)),
        ("announced", _announced(s)),
        ("predictor", _predictor(s)),
    ]
    troubles = [
        (s.waits, "use that waited for a call", "uses that waited for a call"),
        (
            s.over_budget,
            "time over the budget: all was pinned or wanted",
            "times over the budget: all was pinned or wanted",
        ),
        (
            s.too_large,
            f"request of {size(s.too_large_bytes)}, larger than the budget: {_too_large(s)}",
            f"requests larger than the budget, up to {size(s.too_large_bytes)}: {_too_large(s)}",
        ),
        (
            s.failed_calls,
            f"driver call that failed ({s.last_failure})",
            f"driver calls that failed, the last one {s.last_failure}",
        ),
    ]
    rows += [("", f"{n} {one if n == 1 else more}") for n, one, more in troubles if n]
    return rows


def _others(s: ResidencyStatistics) -> list[tuple[str, str]]:
    held_bytes = (s.unmanaged_bytes or 0) + s.hidden_bytes
    untold = s.unmanaged_bytes is None
    if not (held_bytes or s.budget_changes or untold or s.sharers):
        return []
    times = _counted(s.budget_changes, "time")
    text = f"{format_bytes(held_bytes)} of the device; the budget followed {times}"
    if s.sharers:
        text += f", and shares it with {_counted(s.sharers, 'other budget')}"
    if untold:
        text += ", by free memory alone: the driver does not tell who holds what"
    return [("others", text)]


def _waited(s: ResidencyStatistics) -> list[tuple[str, str]]:
    if s.waited_seconds < 1:
        return []
    text = f"{s.waited_seconds:.3g} s, of which {s.waited_for_room_seconds:.3g} s until others left"
    return [("waited", text)]


def _too_large(s: ResidencyStatistics) -> str:
    if not s.host_read_bytes:
        return "left to page faults"
    return f"{format_bytes(s.host_read_bytes)} read on the host, the rest left to page faults"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _moved(s: ResidencyStatistics) -> str:
    to_host = f"{format_bytes(s.evicted_bytes - s.neighbor_bytes)} moved to the host"
    if s.uncopied_bytes:
        to_host += f" ({format_bytes(s.uncopied_bytes)} without a copy: it had kept one)"
    if not s.neighbor_bytes:
        return to_host
    return f"{to_host} and {format_bytes(s.neighbor_bytes)} to another device"


def _beside(s: ResidencyStatistics) -> list[tuple[str, str]]:
    size, rows = format_bytes, []
    if s.neighbor_bytes:
        text = (
            f"{size(s.harvested_bytes)} now, at most {size(s.peak_harvested_bytes)}; "
            f"{size(s.from_neighbor_bytes)} came back"
        )
        if s.in_place_bytes:
            text += f", {size(s.in_place_bytes)} used there"
        if s.given_back_bytes:
            text += f", {size(s.given_back_bytes)} went to the host for their owners"
        if s.given_back_at_once_bytes:
            text += f" ({size(s.given_back_at_once_bytes)} without a copy)"
        rows.append(("on neighbours", text))
    if s.held_back:
        times = _counted(s.held_back, "time")
        rows.append(("held back", f"{times}, to the host: the neighbours were busy"))
    if s.reclaims:
        times = _counted(s.reclaims, "time")
        waited = f"{s.reclaim_wait_seconds:.3g} s were waited for them to leave"
        rows.append(("reclaimed", f"{times} what others held here; {waited}"))
    return rows


def _used_ahead(s: ResidencyStatistics) -> str:
    if not s.fetched_ahead_bytes:
        return ""
    used, far = format_bytes(s.ahead_used_bytes), format_bytes(s.ahead_bytes)
    return f" ({used} of it used in time; up to {far} ahead)"


def _faulted(s: ResidencyStatistics) -> str:
    """Return in words what kernels brought in that nobody had announced."""
    if s.overshoot_bytes is None or s.peak_overshoot_bytes is None or s.faulted_bytes is None:
        return f"unknown: {s.faults_unknown or 'bytes are not counted here'}"
    if not s.faulted_bytes:
        return "nothing beside the budget"
    most = format_bytes(s.peak_overshoot_bytes)
    part = "" if s.overshoot_fraction is None else f" ({s.overshoot_fraction * 100:.0f} % of it)"
    found = f", {format_bytes(s.found_bytes)} found" if s.found_bytes else ""
    return (
        f"about {format_bytes(s.overshoot_bytes)} beside the budget, at most {most}{part}; "
        f"{format_bytes(s.faulted_bytes)} in all{found}"
    )


def _announced(s: ResidencyStatistics) -> str:
    if s.present_rate is None:
        return "nothing"
    share = f"{s.present_rate * 100:.0f} %"
    return f"uses of {format_bytes(s.wanted_bytes)}, of which {share} was there already"


def _predictor(s: ResidencyStatistics) -> str:
    """Return in words whether the predictor is believed, and why."""
    if s.policy in SIMPLE_POLICIES:
        return f"none: {s.policy} decides"
    if s.hit_rate is None:
        return "nothing was predicted yet"
    name = s.policy or "the predictor"
    text = f"{name} was right in {s.hit_rate * 100:.0f} % of the last {s.predictions} uses: "
    return text + prediction_state(s)


def prediction_state(s: ResidencyStatistics) -> str:
    """Return in words what a predictor does now, until when, and how often it was off before."""
    if s.foresees:
        text = "it is on, and decides"
    elif s.predictions < _LEAST_SEEN:
        text = f"it is off, and lru decides until {_LEAST_SEEN} uses were seen"
    else:
        text = f"it is off, and lru decides until it is right in more than {_ON_ABOVE * 100:.0f} %"
    if s.switched_off:
        number = "once" if s.switched_off == 1 else f"{s.switched_off} times"
        text += f"; turned off {number} {'before' if s.foresees else 'so far'}"
    return text

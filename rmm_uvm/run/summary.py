# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The summary at the end of a run, from plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rmm_uvm.recording.recorded import exact_peak_bytes
from rmm_uvm.recording.sample import Known
from rmm_uvm.support.units import format_bytes

if TYPE_CHECKING:
    from rmm_uvm.recording.recorded import Recording

__all__ = ["about_watching", "compose", "most_allocated", "unwatched", "without_reason"]

NO_POOL = "no managed pool"
"""What a note about an installation begins with."""

# How errors name the way without a GPU, which is for calls, and what this command has for it.
_IN_CALLS, _HERE = 'a simulated device ("simulated:16GiB")', "--device simulated:16GiB"


def compose(notes: Sequence[str], body: str, problems: Iterable[str] = ()) -> str:
    """Return the text to print: what could not be watched first, then the report.

    Parameters
    ----------
    notes : sequence of str
        One line each.
    body : str
        The report's text; empty for none.
    problems : iterable of str
        Files that could not be written.

    Examples
    --------
    >>> print(compose(["no managed pool: no GPU"], "all fitted"))
    rmm_uvm: no managed pool: no GPU
    all fitted
    """
    lines = [f"rmm_uvm: {' '.join(note.split())}" for note in notes]
    if body.strip():
        lines.append(body.rstrip())
    lines += [f"rmm_uvm: {' '.join(problem.split())}" for problem in problems]
    return "\n".join(lines)


def most_allocated(recording: Recording) -> str:
    """Return a line, after a line feed, with the peak of live bytes; empty if it is not known.

    The report's footprint is of several resources, and sampled where they are not the run's pool.

    Parameters
    ----------
    recording : Recording
        What was watched.
    """
    peak_bytes = exact_peak_bytes(recording)
    if peak_bytes is None:
        return ""
    return f"\nmost allocated at a time: {format_bytes(peak_bytes)} (peak of live bytes, exact)"


def unwatched(recording: Recording) -> str | None:
    """Return in one line why nothing of a device was seen; None if something was.

    Parameters
    ----------
    recording : Recording
        What was watched.
    """
    if len(recording.samples) and (recording.samples["known"] & Known.COUNTERS).any():
        return None
    if recording.simulated:  # that is watched, and the report says what is missing
        return None
    source = recording.sources.get("kernel_counters")
    return source.reason if source is not None and source.reason else "nothing was counted"


def about_watching(reason: str | None, notes: Sequence[str]) -> list[str]:
    """Return the notes with why nothing was watched first, and no reason twice.

    Parameters
    ----------
    reason : str or None
        As `unwatched` returns it.
    notes : sequence of str
        As `rmm_uvm.run.watching.Watch` has them.

    Examples
    --------
    >>> about_watching("no GPU", ["no managed pool: no GPU"])
    ['no device was watched, and no managed pool installed: no GPU']
    """
    if reason is None:
        return list(notes)
    reason, notes = _in_options(reason), [_in_options(note) for note in notes]
    no_pool = f"{NO_POOL}: {reason}"
    if no_pool in notes:
        first = f"no device was watched, and {NO_POOL} installed: {reason}"
        return [first, *(note for note in notes if note != no_pool)]
    return [f"no device was watched: {reason}", *notes]


def without_reason(recording: Recording, reason: str | None) -> Recording:
    """Return a recording whose text does not tell again why nothing was watched.

    Parameters
    ----------
    recording : Recording
        What was watched.
    reason : str or None
        As `unwatched` returns it: the first line of the summary says it.
    """
    if reason is None:
        return recording
    same = [name for name, why in recording.sources.items() if why.reason == reason]
    if not same:
        return recording
    told = {*same, "own_resources", "rmm_chain"}  # which are not missed where nothing is seen
    return dataclasses.replace(
        recording,
        sources={name: why for name, why in recording.sources.items() if name not in told},
        findings=tuple(
            one for one in recording.findings if one.kind != "monitor" or reason not in one.message
        ),
    )


def _in_options(text: str) -> str:
    return text.replace(_IN_CALLS, _HERE)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The summary at the end of a run, from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rmm_uvm.watch.sample import Known

if TYPE_CHECKING:
    from rmm_uvm.watch.recording import Recording

__all__ = ["compose", "unwatched"]

# In this order: the first one that works makes a recording worth reading.
_COUNTERS = ("kernel_counters",)


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
    rmm-uvm: no managed pool: no GPU
    all fitted
    """
    lines = [f"rmm-uvm: {' '.join(note.split())}" for note in notes]
    if body.strip():
        lines.append(body.rstrip())
    lines += [f"rmm-uvm: {' '.join(problem.split())}" for problem in problems]
    return "\n".join(lines)


def unwatched(recording: Recording) -> str | None:
    """Return in one line why nothing of a device was seen; None if something was.

    Parameters
    ----------
    recording : Recording
        What was watched.
    """
    if len(recording.samples) and (recording.samples["known"] & Known.COUNTERS).any():
        return None
    for name in _COUNTERS:
        source = recording.sources.get(name)
        if source is not None and not source.available:
            return f"no device was watched: {source.reason}"
    return "no device was watched"

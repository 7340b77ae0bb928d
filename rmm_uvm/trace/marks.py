# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""From the marks of a trace, begin and end apart, to stages."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rmm_uvm.recording.recorded import Stage

__all__ = ["Marks"]

_BEGIN, _END, _ANNOTATION = range(3)


class Marks:
    """Puts begins and ends together, thread by thread; an end without a begin is passed over.

    Attributes
    ----------
    annotations : list of (float, str)
        Seconds since the trace began, and text.
    """

    def __init__(self) -> None:
        self.annotations: list[tuple[float, str]] = []
        self._begun: list[tuple[float, str, int, str]] = []
        self._ends: dict[int, float] = {}  # by index in _begun
        self._open: dict[int, list[int]] = {}  # indices, by thread

    def add(self, marks: Iterable[tuple[int, int, int, str, str]]) -> None:
        """Take marks in order of time: time_ns, thread, kind, name, name of the thread."""
        for time_ns, thread, kind, name, thread_name in marks:
            seconds = time_ns / 1e9
            running = self._open.setdefault(thread, [])
            if kind == _BEGIN:
                running.append(len(self._begun))
                self._begun.append((seconds, name, len(running) - 1, thread_name or str(thread)))
            elif kind == _END and running:
                self._ends[running.pop()] = seconds
            elif kind == _ANNOTATION:
                self.annotations.append((seconds, name))

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages in order of their begin; the end of one that runs on is NaN."""
        return tuple(
            Stage(name, begin, self._ends.get(index, math.nan), depth, thread)
            for index, (begin, name, depth, thread) in enumerate(self._begun)
        )

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Rates and the last minute of one process on one device, from totals at different times."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["HISTORY_SECONDS", "Track"]

HISTORY_SECONDS = 60.0


@dataclass
class Track:
    """Totals so far, and what follows from two of them.

    Attributes
    ----------
    figures : dict of str to int or None
        The latest.
    in_bytes_per_second, out_bytes_per_second, faults_per_second : float or None
        Between the latest two; None until there are two.
    """

    figures: dict[str, Any] = field(default_factory=dict)
    in_bytes_per_second: float | None = None
    out_bytes_per_second: float | None = None
    faults_per_second: float | None = None
    _time_seconds: float | None = None
    _history: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, figures: Mapping[str, Any], time_seconds: float, now_seconds: float) -> None:
        """Take new figures in.

        Parameters
        ----------
        figures : mapping of str to int or None
            By the names of `rmm_uvm.top.view.ProcessRow`.
        time_seconds : float
            When they were right, on whatever clock the source has. The same time again: the
            process has published nothing new, and rates stay.
        now_seconds : float
            On the clock of this command.
        """
        before, elapsed = self.figures, 0.0
        if self._time_seconds is not None:
            elapsed = time_seconds - self._time_seconds
        if elapsed == 0 and self._time_seconds is not None:
            return
        if elapsed > 0:
            self.in_bytes_per_second = _rate("host_to_device_bytes", before, figures, elapsed)
            self.out_bytes_per_second = _rate("device_to_host_bytes", before, figures, elapsed)
            faults = [_rate(name, before, figures, elapsed) for name in _FAULTS]
            known = [each for each in faults if each is not None]
            self.faults_per_second = sum(known) if known else None
            moved = (self.in_bytes_per_second or 0.0) + (self.out_bytes_per_second or 0.0)
            self._history.append((now_seconds, moved))
        else:  # the source began anew: no rate across the gap
            self.in_bytes_per_second = self.out_bytes_per_second = self.faults_per_second = None
        while self._history and now_seconds - self._history[0][0] > HISTORY_SECONDS:
            self._history.popleft()
        self.figures, self._time_seconds = dict(figures), time_seconds

    def history(self, now_seconds: float) -> tuple[tuple[float, float], ...]:
        """Return age and rate of the last minute, oldest first."""
        return tuple(
            (max(0.0, now_seconds - time), rate)
            for time, rate in self._history
            if now_seconds - time <= HISTORY_SECONDS
        )


_FAULTS = ("cpu_faults", "gpu_faults")


def _rate(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any], elapsed_seconds: float
) -> float | None:
    old, new = before.get(name), after.get(name)
    if old is None or new is None:
        return None
    return max(0.0, float(new - old) / elapsed_seconds)

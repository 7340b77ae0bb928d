# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hysteresis and rate limit of one kind of finding, as a value."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Alarm"]


class Alarm(NamedTuple):
    """Whether a kind of finding is due.

    Parameters
    ----------
    armed : bool
        Goes off at the next figure above the threshold.
    last_seconds : float or None
        When it went off last; None for never.
    """

    armed: bool = True
    last_seconds: float | None = None

    def due(self, now_seconds: float, repeat_seconds: float) -> bool:
        """Return whether a figure above the threshold would be a finding now."""
        waited = self.last_seconds is None or now_seconds - self.last_seconds >= repeat_seconds
        return self.armed and waited

    def fired(self, now_seconds: float) -> Alarm:
        """Return the alarm after it went off."""
        return Alarm(armed=False, last_seconds=now_seconds)

    def rearmed(self) -> Alarm:
        """Return the alarm after the figure fell below.

        Examples
        --------
        >>> alarm = Alarm().fired(10.0).rearmed()
        >>> alarm.due(20.0, repeat_seconds=60), alarm.due(70.0, repeat_seconds=60)
        (False, True)
        """
        return self._replace(armed=True)

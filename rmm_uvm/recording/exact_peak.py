# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The exact peak of live bytes of a run, which samples may miss: a setting of its recording."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmm_uvm.recording.recorded import Recording

__all__ = ["PEAK", "described", "exact_peak_bytes"]

PEAK = "peak_live_bytes"
"""Setting of a recording: most bytes that the pool had allocated at a time, exact."""

_MOST_DIGITS = 20  # of a number of 64 bits; the setting is a text that another process sent


def exact_peak_bytes(recording: Recording) -> int | None:
    """Return the most bytes that the run's pool had allocated at a time; None if not known.

    Parameters
    ----------
    recording : Recording
        What was watched.
    """
    peak = str(recording.settings.get(PEAK, ""))
    return int(peak) if peak.isdecimal() and len(peak) <= _MOST_DIGITS else None


def described(peaks_bytes: Iterable[int | None]) -> dict[str, str]:
    """Return the setting of a recording, given the peak of each device that is watched.

    None where it is not known, where nothing was allocated, and of several devices: a recording
    has one such peak, and no reader could tell whose.

    Examples
    --------
    >>> described([8388608]), described([0]), described([None]), described([1, 2])
    ({'peak_live_bytes': '8388608'}, {}, {}, {})
    """
    known = list(peaks_bytes)
    return {PEAK: str(known[0])} if len(known) == 1 and known[0] else {}

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The exact peak of live bytes of a run, which samples may miss: a setting of its recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmm_uvm.watch.recording import Recording

__all__ = ["PEAK", "exact_peak_bytes"]

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

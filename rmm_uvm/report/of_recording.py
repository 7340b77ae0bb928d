# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a recording: one value that shows itself as text, JSON or HTML."""

from __future__ import annotations

from typing import Any

from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report.as_dict import as_dict
from rmm_uvm.report.as_html import as_frame
from rmm_uvm.report.document import Document
from rmm_uvm.report.page import inline, page
from rmm_uvm.report.presented import Presented
from rmm_uvm.report.summary import summary

__all__ = ["Report"]


class Report(Presented):
    """A report of what a monitor saw, for people and programs.

    Parameters
    ----------
    recording : Recording
        As from `Monitor.recording`, or read from a trace.

    Notes
    -----
    ``str(report)`` is the summary for a terminal: about 25 lines. In Jupyter a report shows its
    timeline. Thread-safe: a recording does not change.

    Examples
    --------
    >>> import numpy as np
    >>> from rmm_uvm.recording.recorded import Recording
    >>> from rmm_uvm.recording.sample import SAMPLE_DTYPE
    >>> print(Report(Recording(np.zeros(0, SAMPLE_DTYPE), ())))
    rmm_uvm: watched memory for 0 s
    <BLANKLINE>
    no advice: no memory could be watched
    <BLANKLINE>
    watching took 0 s of processor time
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def _summary(self) -> Document:
        return summary(self.recording)

    def _page(self) -> Document:
        return page(self.recording)

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values; None for what is not known."""
        return as_dict(self.recording)

    def inline(self) -> str:
        """Return advice and timeline for a notebook, as HTML that keeps to itself.

        Raises
        ------
        AvailabilityError
            Bokeh is not installed.
        """
        return as_frame(inline(self.recording))

    def _repr_html_(self) -> str | None:
        """Return `inline`; None, and so the text, without Bokeh."""
        from rmm_uvm.errors import AvailabilityError

        try:
            return self.inline()
        except AvailabilityError:
            return None

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Results that show themselves: as text, as a page, and to programs as figures."""

from __future__ import annotations

import abc

from rmm_uvm.report.as_html import as_html
from rmm_uvm.report.as_text import WIDTH, as_text
from rmm_uvm.report.document import Document
from rmm_uvm.support.saving import Saving

__all__ = ["Presented"]


class Presented(Saving):
    """A result with two documents: what a terminal shows, and a page with everything.

    Notes
    -----
    Thread-safe as far as what it tells does not change.
    """

    @abc.abstractmethod
    def _summary(self) -> Document:
        """Return what a terminal shows."""

    @abc.abstractmethod
    def _page(self) -> Document:
        """Return the page. Raises AvailabilityError without what its charts need."""

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = WIDTH) -> str:
        """Return the summary for a terminal of so many columns; tables keep their width."""
        return as_text(self._summary(), width)

    def html(self) -> str:
        """Return all of it as one HTML page that needs no other file and no network.

        Raises
        ------
        AvailabilityError
            Bokeh is not installed.
        """
        return as_html(self._page())

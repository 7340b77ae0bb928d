# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Results that show themselves: as text, as a page, as figures for programs, and as files."""

from __future__ import annotations

import abc
import json
import os
from pathlib import Path
from typing import Any, ClassVar

from rmm_uvm.report.as_html import as_html
from rmm_uvm.report.as_text import WIDTH, as_text
from rmm_uvm.report.document import Document
from rmm_uvm.support.output import written_whole

__all__ = ["Presented"]


class Presented(abc.ABC):
    """A result with figures and two documents: what a terminal shows, and a page with everything.

    Notes
    -----
    Thread-safe as far as what it tells does not change.

    Examples
    --------
    >>> from rmm_uvm.report.document import Paragraph, Section
    >>> class Sum(Presented):
    ...     def to_dict(self):
    ...         return {"total_bytes": 3}
    ...
    ...     def _summary(self):
    ...         return Document((Section("", (Paragraph("3 bytes"),)),))
    ...
    ...     _page = _summary
    >>> print(Sum(), Sum().to_json())
    3 bytes {
     "total_bytes": 3
    }
    """

    _called: ClassVar[str] = "the report"  # in messages

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values; None for what is not known."""

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

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file, whole or not at all.

        Raises
        ------
        DataError
            It cannot be written.
        """
        self._save(path, self.to_json() + "\n")

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write `html` to a file, whole or not at all.

        Raises
        ------
        AvailabilityError
            Bokeh is not installed.
        DataError
            It cannot be written.
        """
        self._save(path, self.html())

    def _save(self, path: str | os.PathLike[str], text: str) -> None:
        with written_whole(Path(path), self._called) as target:
            target.write_text(text, encoding="utf-8")

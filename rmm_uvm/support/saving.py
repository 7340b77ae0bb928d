# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Results that a user can save: as JSON for programs, as one HTML page for people."""

from __future__ import annotations

import abc
import json
import os
from pathlib import Path
from typing import Any, ClassVar

from rmm_uvm.support.output import written_whole

__all__ = ["Saving"]


class Saving(abc.ABC):
    """A result whose figures are a dictionary, and whose page is one HTML file.

    Notes
    -----
    Thread-safe as far as `to_dict` and `html` are.

    Examples
    --------
    >>> class Sum(Saving):
    ...     def to_dict(self):
    ...         return {"total_bytes": 3}
    ...
    ...     def html(self):
    ...         return "<!DOCTYPE html><title>3 bytes</title>"
    >>> print(Sum().to_json())
    {
     "total_bytes": 3
    }
    """

    _called: ClassVar[str] = "the report"  # in messages

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values; None for what is not known."""

    @abc.abstractmethod
    def html(self) -> str:
        """Return one HTML page that needs no other file and no network.

        Raises
        ------
        AvailabilityError
            Bokeh is not installed.
        """

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

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of names and values, as text and as HTML, and values that print as one."""

from __future__ import annotations

import html
from collections.abc import Sequence

from rmm_uvm.support.units import format_bytes

__all__ = ["ShownAsTable", "html_table", "known_bytes", "text_table"]


def text_table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return the title, and one aligned line for each row.

    Examples
    --------
    >>> print(text_table("device 0", [("footprint", "1.00 GiB"), ("capacity", "2.00 GiB")]))
    device 0
      footprint  1.00 GiB
      capacity   2.00 GiB
    """
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in rows)])


def html_table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return the same as one HTML table; names and values are escaped."""
    body = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption>{html.escape(title)}</caption>{body}</table>"


class ShownAsTable:
    """Prints as a table, in notebooks too."""

    def _title(self) -> str:
        raise NotImplementedError

    def _rows(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return text_table(self._title(), self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._rows())


def known_bytes(value: int | None) -> str:
    """Return a size, or that it is unknown."""
    return "unknown" if value is None else format_bytes(value)

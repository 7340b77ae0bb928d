# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A table of names and values, as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["html_table", "text_table"]


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

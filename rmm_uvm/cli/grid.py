# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of ``rmm-uvm doctor``."""

from __future__ import annotations

from rich.table import Table

__all__ = ["grid"]


def grid(*titles: str) -> Table:
    """Return an empty table without lines; its first column never breaks."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=any(titles), header_style="dim")
    for place, title in enumerate(titles):
        table.add_column(title, no_wrap=place == 0, overflow="fold")
    return table

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The console that every command prints on: names and paths as they are, in lines of any width."""

from __future__ import annotations

import shutil

from rich.console import Console

__all__ = ["make_console"]


def make_console(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """Return a console for a stream of this process, with a width and a height.

    Rich takes ``COLUMNS=0`` and ``LINES=0``, which shells without a terminal leave behind, at their
    word, and prints nothing. They are as unset here: the terminal's, or 80 columns and 24 lines.

    Parameters
    ----------
    stderr : bool
        Of the error stream, not standard output.
    soft_wrap : bool
        Break no lines.
    """
    console = Console(
        stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=soft_wrap
    )
    size = console.size
    fallback = shutil.get_terminal_size()
    if size.width < 1:
        console.width = fallback.columns
    if size.height < 1:
        console.height = fallback.lines
    return console

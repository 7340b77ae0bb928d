# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of a document between two marks, which a benchmark writes."""

from __future__ import annotations

from pathlib import Path


def with_part(text: str, document: Path, begin: str, end: str, part: str) -> str:
    """Return the document with the part between the marks anew; the marks stay.

    Parameters
    ----------
    text : str
        The document's.
    document : Path
        Which document it is, for the error.
    begin, end : str
        The marks: comments, each on a line of its own.
    part : str
        What is to stand between them, without a newline at its ends.

    Raises
    ------
    ValueError
        If the marks are not there, once and in order.
    """
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"{document.name} has no part between {begin} and {end}")
    head, rest = text.split(begin)
    return f"{head}{begin}\n{part}\n{end}{rest.split(end)[1]}"

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ranges of whole lines of a text file, and dividing them between loans."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rmm_uvm.errors import DataError
from rmm_uvm_mortgage.schema import DELIMITER, TableSchema

_DELIMITER = DELIMITER.encode()


@dataclass(frozen=True, slots=True)
class TextRange:
    """Whole data lines of a text file: bytes `begin_bytes` to `end_bytes`, without the header.

    Parameters
    ----------
    path : Path
        The file.
    begin_bytes : int
        Offset of the first line, in bytes; > 0, since a header line comes before.
    end_bytes : int
        Offset past the last line, in bytes; <= size of the file.
    """

    path: Path
    begin_bytes: int
    end_bytes: int

    @property
    def size_bytes(self) -> int:
        """Length of the range in bytes."""
        return self.end_bytes - self.begin_bytes


def body_of(path: Path, schema: TableSchema) -> TextRange:
    """Return the data lines of a file, after checking its first and last line.

    Parameters
    ----------
    path : Path
        The file; its first line is a header and is always discarded.
    schema : TableSchema
        The columns it must have.

    Raises
    ------
    DataError
        The file cannot be read, is empty, holds only a header, or its first or last line has
        another number of columns than the schema.
    """
    try:
        size_bytes = path.stat().st_size
        if size_bytes == 0:
            raise DataError(f"{path} is empty; expected a header and data lines")
        with path.open("rb") as file:
            header = file.readline()
            first = file.readline()
            if not first.strip():
                raise DataError(f"{path} holds a header but no data lines")
            tail_bytes = min(size_bytes, 1 << 16)
            file.seek(size_bytes - tail_bytes)
            last = file.read(tail_bytes).rstrip(b"\r\n").rpartition(b"\n")[2]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    expected = len(schema.columns)
    for line, where in ((first, "second"), (last, "last")):
        found = line.count(_DELIMITER) + 1
        if found != expected:
            truncated = " (is the file truncated?)" if where == "last" else ""
            raise DataError(
                f"{path}: the {where} line has {found} columns, the {schema.name} table has "
                f"{expected}, separated by '{DELIMITER}'{truncated}"
            )
    return TextRange(path, len(header), size_bytes)


def split_loans(body: TextRange, parts: int) -> list[TextRange]:
    """Divide a performance file into ranges of whole loans and about equal bytes.

    Parameters
    ----------
    body : TextRange
        Data lines, the rows of each loan together.
    parts : int
        Number of ranges wanted; >= 1. Fewer are returned when there are fewer loans.
    """
    if parts == 1:
        return [body]
    with body.path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as text:
        edges = [body.begin_bytes]
        for k in range(1, parts):
            target = max(body.begin_bytes + body.size_bytes * k // parts, edges[-1])
            edge = _next_loan(text, target, body.end_bytes)
            if edges[-1] < edge < body.end_bytes:
                edges.append(edge)
    edges.append(body.end_bytes)
    return [TextRange(body.path, a, b) for a, b in pairwise(edges)]


def _next_loan(text: mmap.mmap, offset: int, end: int) -> int:
    """Return the offset of the first line of the first loan that begins past `offset`."""
    line = text.rfind(b"\n", 0, offset) + 1
    loan = text[line : text.find(_DELIMITER, line) + 1]
    while line < end and text[line : line + len(loan)] == loan:
        line = text.find(b"\n", line) + 1 or end
    return line

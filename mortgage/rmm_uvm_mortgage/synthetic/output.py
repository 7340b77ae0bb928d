# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Files that appear under their names only when they are complete."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rmm_uvm_mortgage.schema import TableSchema
from rmm_uvm_mortgage.synthetic.text import header_line


@contextlib.contextmanager
def output_file(path: Path, schema: TableSchema) -> Iterator[BinaryIO]:
    """Open a table's file for its data lines, with the header line written.

    Parameters
    ----------
    path : Path
        The file's name once it is complete; until then it ends in ``.partial``. When the enclosed
        block fails, the partial file is removed and a file of that name stays as it was.
    schema : TableSchema
        The table.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(header_line(schema))
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)

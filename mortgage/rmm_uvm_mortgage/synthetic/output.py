# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Files that appear under their names only when they are complete."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rmm_uvm.support.output import whole_file
from rmm_uvm_mortgage.schema import TableSchema
from rmm_uvm_mortgage.synthetic.text import header_line


@contextlib.contextmanager
def output_file(path: Path, schema: TableSchema) -> Iterator[BinaryIO]:
    """Open a table's file for its data lines, with the header line written.

    Parameters
    ----------
    path : Path
        The file's name once it is complete, as `rmm_uvm.support.output.whole_file` has it. When
        the enclosed block fails, nothing is left of it and a file of that name stays as it was.
    schema : TableSchema
        The table.
    """
    with whole_file(path) as target, target.open("wb") as file:
        file.write(header_line(schema))
        yield file

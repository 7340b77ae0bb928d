# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The categories of a mortgage data set, as its folder tells them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rmm_uvm_mortgage.dictionary import FILE_NAME, load_domains
from rmm_uvm_mortgage.files import find_files

from .promises import FOLDER, Finding, attempted

FILES = ("names.csv", "acq/Acquisition_2000Q1.txt", "perf/Performance_2000Q1.txt")
"""Of the data set, each of one byte."""


def categories(data: bytes) -> None:
    """Read the categories of a data set of three small files."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        for file in FILES:
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(b"\n")
        (folder / FILE_NAME).write_bytes(data)
        found = attempted(lambda: load_domains(find_files(folder)))
    for values in (found or {}).values():
        if list(values) != sorted({str(one) for one in values}):
            raise Finding(f"not names in order: {values}")

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs notebooks on a GPU, and keeps what their cells with the tag ``gpu`` print.

    RMM_UVM_MANAGED_LIMIT=24GiB python ci/gpu_notebooks.py notebooks/07_training.ipynb ...

The other cells keep the outputs that they have, of simulated devices. Jupyter is not needed: cells
run one after the other, as a program would. A cell that fails ends it, and nothing is written.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["main", "outputs_of", "run"]

_TAG = "gpu"


def is_for_gpus(cell: dict[str, Any]) -> bool:
    """Whether what a cell prints is kept of a GPU."""
    return _TAG in cell.get("metadata", {}).get("tags", ())


def outputs_of(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Run all code cells in their order, as one program; return what each cell printed.

    Raises
    ------
    Exception
        Whatever a cell raises.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for number, cell in enumerate(cells):
        printed = io.StringIO()
        if cell["cell_type"] == "code":
            text = "".join(cell["source"])
            with contextlib.redirect_stdout(printed):
                exec(compile(text, f"cell {number}", "exec", dont_inherit=True), names)
        found.append(printed.getvalue())
    return found


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook with what its cells for GPUs print now.

    Raises
    ------
    ValueError
        If none of its cells is for GPUs.
    """
    if not any(map(is_for_gpus, notebook["cells"])):
        raise ValueError(f"no cell has the tag {_TAG!r}: nothing of it would be kept")
    cells = []
    for cell, printed in zip(notebook["cells"], outputs_of(notebook["cells"]), strict=True):
        text = printed.splitlines(keepends=True)
        output = {"name": "stdout", "output_type": "stream", "text": text}
        cells.append({**cell, "outputs": [output] if text else []} if is_for_gpus(cell) else cell)
    return {**notebook, "cells": cells}


def main(arguments: Sequence[str]) -> None:
    """Run the notebooks of these paths, and write them."""
    for path in map(Path, arguments):
        print(f"== {path}", flush=True)
        kept = run(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

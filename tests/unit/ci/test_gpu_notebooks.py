# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`ci/gpu_notebooks.py` keeps what cells for GPUs print, and nothing else of a notebook changes."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[3]
_spec = importlib.util.spec_from_file_location(
    "gpu_notebooks", REPOSITORY / "ci" / "gpu_notebooks.py"
)
assert _spec is not None
assert _spec.loader is not None
gpu_notebooks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(gpu_notebooks)


def cell(text: str, *tags: str, printed: str = "", kind: str = "code") -> dict[str, Any]:
    stream = {"name": "stdout", "output_type": "stream", "text": [printed]}
    outputs = {"outputs": [stream] if printed else []} if kind == "code" else {}
    source = text.splitlines(keepends=True)
    return {"cell_type": kind, "metadata": {"tags": list(tags)}, "source": source, **outputs}


def printed_by(cell: dict[str, Any]) -> str:
    return "".join(line for output in cell["outputs"] for line in output["text"])


def test_cells_for_gpus_have_what_they_print_and_others_what_they_had() -> None:
    notebook = {
        "cells": [
            cell("# A heading", kind="markdown"),
            cell("n = 1\nprint(n)", printed="of a simulated device"),
            cell("n += 1\nprint(n)\nprint('two')", "gpu", printed="before"),
            cell("n += 1", "gpu", printed="before"),
        ],
        "nbformat": 4,
    }
    found = gpu_notebooks.run(notebook)
    assert found["cells"][:2] == notebook["cells"][:2]
    assert [printed_by(one) for one in found["cells"][2:]] == ["2\ntwo\n", ""]
    assert found["nbformat"] == 4


def test_notebook_with_a_cell_that_fails_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps({"cells": [cell("print(1)", "gpu"), cell("1 / 0")]}))
    before = path.read_text()
    with pytest.raises(ZeroDivisionError):
        gpu_notebooks.main([str(path)])
    assert path.read_text() == before


def test_notebook_of_which_nothing_would_be_kept_is_refused() -> None:
    with pytest.raises(ValueError, match="no cell has the tag 'gpu'"):
        gpu_notebooks.run({"cells": [cell("print(1)")]})


def test_notebook_is_written_as_it_is_kept(tmp_path: Path) -> None:
    kept = REPOSITORY / "notebooks" / "07_training.ipynb"
    text = kept.read_text(encoding="utf-8")
    path = tmp_path / kept.name
    quiet = json.loads(text)
    for one in quiet["cells"]:
        one["source"] = [] if one["cell_type"] == "code" else one["source"]
    path.write_text(json.dumps(quiet), encoding="utf-8")
    gpu_notebooks.main([str(path)])
    quiet["cells"] = [
        {**one, "outputs": []} if gpu_notebooks.is_for_gpus(one) else one for one in quiet["cells"]
    ]
    expected = json.dumps(quiet, indent=1, ensure_ascii=False) + "\n"
    assert path.read_text(encoding="utf-8") == expected
    assert json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n" == text


def test_kept_outputs_of_cells_for_gpus_are_of_one() -> None:
    found = []
    for path in sorted((REPOSITORY / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found += [printed_by(one) for one in cells if gpu_notebooks.is_for_gpus(one)]
    assert found
    assert not [text for text in found if text and "NVIDIA" not in text]

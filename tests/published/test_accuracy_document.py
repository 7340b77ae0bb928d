# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""docs/simulator-accuracy.md says what the committed results say."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .places import DOCUMENT, RESULTS

Script = Callable[[str], ModuleType]


def committed(script: Script) -> list[dict[str, Any]]:
    """Return the committed tables in the order of the document."""
    return [
        json.loads((RESULTS / f"{name}.json").read_text())["table"] for name in script("all").NAMES
    ]


def test_document_is_what_the_committed_results_say(script: Script) -> None:
    text = DOCUMENT.read_text()

    assert script("_accuracy").document_with(text, committed(script)) == text, (
        "run: python benchmarks/published/all.py --write"
    )


def test_another_figure_changes_the_document(script: Script) -> None:
    text = DOCUMENT.read_text()
    tables = committed(script)
    tables[0]["rows"][0]["ours"] += 1000

    assert script("_accuracy").document_with(text, tables) != text


@pytest.mark.parametrize("text", ["", "<!-- end -->", "# no marks"])
def test_document_without_marks_is_refused(script: Script, text: str) -> None:
    with pytest.raises(ValueError, match=r"simulator-accuracy\.md has no part"):
        script("_accuracy").document_with(text, [])

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Results saved as files: what is in them, and what is left when they cannot be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import DataError
from rmm_uvm.report.document import Document
from rmm_uvm.report.presented import Presented


class Result(Presented):
    """A result of one figure."""

    _called = "the result"

    def __init__(self, figure: float = 1.5) -> None:
        self.figure = figure

    def to_dict(self) -> dict[str, Any]:
        return {"figure": self.figure}

    def _summary(self) -> Document:
        return Document(())

    _page = _summary

    def html(self) -> str:
        return "<p>ä</p>"


def test_saved_files_hold_the_figures_and_the_page(tmp_path: Path) -> None:
    Result().save_json(tmp_path / "x.json")
    Result().save_html(str(tmp_path / "x.html"))
    assert json.loads((tmp_path / "x.json").read_text()) == {"figure": 1.5}
    assert (tmp_path / "x.json").read_text() == Result().to_json() + "\n"
    assert (tmp_path / "x.html").read_bytes() == "<p>ä</p>".encode()


@pytest.mark.parametrize("save", ["save_json", "save_html"])
def test_saving_to_a_missing_folder_is_refused_by_name(save: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the result cannot be written to .*missing"):
        getattr(Result(), save)(tmp_path / "missing" / "x")


def test_figure_that_json_has_not_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    with pytest.raises(ValueError, match="JSON"):
        Result(float("nan")).save_json(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_result_without_a_page_cannot_be_made() -> None:
    class Halfway(Presented):
        def to_dict(self) -> dict[str, Any]:
            return {}

        def _summary(self) -> Document:
            return Document(())

    with pytest.raises(TypeError, match=r"abstract method '?_page"):
        Halfway()  # type: ignore[abstract]

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks on a GPU are told where to write, or do not begin."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .residency_scripts import script

harness = script("common/harness")


def test_json_path_that_is_given_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", "--json", "found.json"])
    assert harness.asked_json_path("What it does.\n\nMore.") == Path("found.json")


@pytest.mark.parametrize("words", [[], ["--json"], ["--json", "found.json", "--rounds", "3"]])
def test_json_path_that_is_missing_or_not_alone_ends_the_program(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", *words])
    with pytest.raises(SystemExit) as caught:
        harness.asked_json_path(None)
    assert caught.value.code == 2
    assert "usage: benchmark [-h] --json JSON" in capsys.readouterr().err

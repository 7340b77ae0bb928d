# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Generated data sets are made once, and never half."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from rmm_uvm.errors import DataError
from rmm_uvm_mortgage import data_cache
from rmm_uvm_mortgage.data_cache import cache_directory, generated_data
from rmm_uvm_mortgage.files import find_files
from rmm_uvm_mortgage.generate import GeneratorConfig

SMALL = GeneratorConfig(loans_per_quarter=20, months=12)


def test_data_set_is_generated_once(tmp_path: Path) -> None:
    calls: list[object] = []
    first = generated_data(SMALL, directory=tmp_path, progress=calls.append)
    made = len(calls)
    assert made > 0
    assert generated_data(SMALL, directory=tmp_path, progress=calls.append) == first
    assert len(calls) == made
    assert len(find_files(first).quarters) == 1


def test_data_sets_of_other_configurations_are_others(tmp_path: Path) -> None:
    other = GeneratorConfig(loans_per_quarter=20, months=12, seed=1)
    names = {generated_data(config, directory=tmp_path).name for config in (SMALL, other)}
    assert len(names) == 2


def test_generation_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(directory: Path, *_: object, **__: object) -> None:
        (directory / "names.csv").touch()
        raise DataError("the disk is full")

    monkeypatch.setattr(data_cache, "generate", fail)
    with pytest.raises(DataError, match="the disk is full"):
        generated_data(SMALL, directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_cache_that_cannot_be_written_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="set XDG_CACHE_HOME"):
        generated_data(SMALL, directory=tmp_path / "file" / "below")


def test_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_directory() == Path("/somewhere/rmm-uvm/mortgage")

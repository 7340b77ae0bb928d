# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A small data set, generated once for all tests of the mortgage pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmm_uvm_mortgage.generate import GeneratorConfig, generate

LOANS_PER_QUARTER = 300


@pytest.fixture(scope="session")
def mortgage_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a data set of two quarters; tests must not change it."""
    directory = tmp_path_factory.mktemp("mortgage")
    config = GeneratorConfig(loans_per_quarter=LOANS_PER_QUARTER, quarters=2, months=30, seed=7)
    generate(directory, config, workers=2)
    return directory


@pytest.fixture
def mortgage_copy(mortgage_data: Path, tmp_path: Path) -> Path:
    """Return the directory of a copy of the data set, to be broken."""
    import shutil

    return Path(shutil.copytree(mortgage_data, tmp_path / "data"))

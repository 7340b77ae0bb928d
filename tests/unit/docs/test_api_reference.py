# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The API reference has a page for every public package; ci/build_api.sh checks the names there."""

from __future__ import annotations

import importlib.util
import zlib
from pathlib import Path
from types import ModuleType

import pytest

import rmm_uvm

REPOSITORY = Path(__file__).resolve().parents[3]
# Of these nothing is for users to import: commands, and what the others are made of.
INTERNAL = {
    *("_lib", "cli", "integrations", "machine", "pool", "recording", "run", "support"),
    *("top", "watch"),
}


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_api", REPOSITORY / "ci" / "check_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_package_has_a_page(check: ModuleType) -> None:
    root = Path(rmm_uvm.__file__).parent
    packages = {path.parent.name for path in root.glob("*/__init__.py")}
    pages = {name.partition(".")[2] for name in check.modules()}
    assert packages - INTERNAL - pages == set()


def test_every_page_is_in_the_index_and_of_a_module_that_is_there(check: ModuleType) -> None:
    pages = {path.stem for path in (REPOSITORY / "docs" / "api").glob("rmm_uvm*.rst")}
    assert pages == set(check.modules())
    assert check.public() >= {"rmm_uvm.reinitialize", "rmm_uvm.errors.UvmError"}


def test_name_that_is_not_in_an_inventory_is_found(check: ModuleType) -> None:
    packed = zlib.compress(b"rmm_uvm.plan py:function 1 a.html#$ -\n")
    assert check.documented(b"# 1\n# 2\n# 3\n# 4\n" + packed) == {"rmm_uvm.plan"}
    assert "rmm_uvm.reinitialize" not in check.documented(b"# 1\n# 2\n# 3\n# 4\n" + packed)
    assert check.last_names("`rmm_uvm.a.B(1)` and `other.C`") == {"B"}

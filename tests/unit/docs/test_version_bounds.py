# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Bounds of versions are those of pyproject.toml, wherever a document tells them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ...support.projects import CONTENTS, requirement_lines

REPOSITORY = Path(__file__).resolve().parents[3]
# What documents quote: `bokeh 0.1 is not >=3.4`, and 'bokeh>=3.4' of a command.
BOUNDS = r"((?:[<>=]=?\d[\w.*]*,?)+)"
TOLD = re.compile(rf"\b([\w.-]+) 0\.1 is not {BOUNDS}|['\"]([\w.-]+?){BOUNDS}['\"]")
DOCUMENTS = sorted([*(REPOSITORY / "docs").rglob("*.md"), *REPOSITORY.glob("*.md")])


def project_bounds() -> dict[str, set[SpecifierSet]]:
    """Return what our projects ask of each package, in all their lists."""
    found = defaultdict(set)
    for needed in map(Requirement, requirement_lines()):
        found[canonicalize_name(needed.name)].add(needed.specifier)
    return found


def told_bounds(text: str) -> list[tuple[str, SpecifierSet]]:
    """Return the packages whose bounds a document tells, and the bounds."""
    return [
        (canonicalize_name(name or other), SpecifierSet(bounds or others))
        for name, bounds, other, others in TOLD.findall(text)
    ]


def wrong(text: str) -> list[tuple[str, SpecifierSet]]:
    """Return what a document tells otherwise than pyproject.toml, of packages that are there."""
    asked = project_bounds()
    return [
        (name, bounds)
        for name, bounds in told_bounds(text)
        if name in asked and bounds not in asked[name]
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_bounds_in_documents_are_those_of_the_project(path: Path) -> None:
    assert wrong(path.read_text()) == []


def test_bounds_of_every_package_that_can_be_too_old_are_found() -> None:
    text = (REPOSITORY / "docs/measure/environments.md").read_text()
    names = {name for name, _ in told_bounds(text)}
    assert {"bokeh", "cudf-cu13", "nvidia-cuda-cupti", "torch", "xgboost-cpu"} <= names
    names = {name for name, _ in told_bounds((REPOSITORY / "CONTRIBUTING.md").read_text())}
    assert {"rmm-cu13", "nvidia-cuda-crt"} <= names


@pytest.mark.parametrize(
    "text", ["`bokeh 0.1 is not >=3.4: pip install`", "pip install 'bokeh>=3.4' \"click>=8.1\""]
)
def test_bounds_that_the_project_does_not_have_are_found(text: str) -> None:
    assert wrong(text) == [("bokeh", SpecifierSet(">=3.4"))]


def test_lower_bound_of_a_package_is_the_same_in_all_lists() -> None:
    for name, asked in project_bounds().items():
        lower = {
            one for bounds in asked for one in bounds if one.operator in (">=", "==", "~=", ">")
        }
        assert len(lower) == 1, name


def test_mortgage_needs_the_version_of_rmm_uvm_beside_it() -> None:
    projects = [each["project"] for each in CONTENTS.values()]
    (version,) = {each["version"] for each in projects}
    assert CONTENTS["rmm-uvm-mortgage"]["project"]["dependencies"] == [f"rmm-uvm=={version}"]

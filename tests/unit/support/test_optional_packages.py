# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What extras need, and how a version that does not do is told."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from rmm_uvm.doctor.extras import PURPOSES, extras
from rmm_uvm.support import optional_packages
from rmm_uvm.support.optional_packages import Requirement, parse_requirement, requirements, too_old

PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"
REPORT = Requirement("report", "bokeh", ((">=", "3.8.2"),))


@pytest.mark.parametrize("version", ["3.8.2", "3.8.2.0", "3.10.1", "4"])
def test_version_that_does_has_no_problem(version: str) -> None:
    assert REPORT.problem(version) == ""


@pytest.mark.parametrize("version", ["3.8.1", "2.4", "3"])
def test_version_that_is_too_old_is_told_with_what_is_wanted(version: str) -> None:
    assert REPORT.problem(version) == f"bokeh {version} is not >=3.8.2"


def test_bounds_of_one_package_have_to_hold_together() -> None:
    found = parse_requirement('torch<2.14,>=2.9; extra == "test"')
    assert found is not None
    assert [found.problem(version) != "" for version in ("2.8", "2.9", "2.13.1", "2.14")] == [
        *(True, False, False, True)
    ]


def test_minor_version_is_equal_whatever_follows_it() -> None:
    found = parse_requirement('cudf-cu13==26.10.*; extra == "cudf"')
    assert found is not None
    assert found.problem("26.10.3") == ""
    assert found.problem("26.12.0") == "cudf-cu13 26.12.0 is not ==26.10.*"


def test_installed_package_says_what_pyproject_does() -> None:
    extras_there = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    told = {(each.extra, each.package) for each in requirements()}
    assert {extra for extra, _ in told} == set(extras_there)
    for extra, lines in extras_there.items():
        assert sum(one == extra for one, _ in told) == len(lines)


def test_every_extra_for_users_has_a_purpose() -> None:
    extras_there = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert set(PURPOSES) == set(extras_there) - {"test"}


def test_requirements_of_a_package_that_is_not_installed_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert requirements() == ()


def test_too_old_names_package_and_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_packages, "installed_version", lambda name: "0.1")
    assert too_old("report") == "bokeh 0.1 is not >=3.8.2: pip install 'rmm-uvm[report]'"
    assert "pandas 0.1" in too_old("mortgage", "pandas", "pyarrow")
    assert "xgboost" not in too_old("mortgage", "pandas", "pyarrow")


def test_too_old_says_nothing_of_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_packages, "installed_version", lambda name: None)
    assert too_old("report") == ""


def test_extra_is_available_with_all_its_packages_and_shows_them() -> None:
    found = extras([REPORT], {"bokeh": "3.9.2"}.get)
    assert [(each.name, each.available, each.detail) for each in found] == [
        ("report", True, "bokeh 3.9.2")
    ]


def test_extra_without_a_package_says_which_and_how_to_get_it() -> None:
    found = extras([REPORT, Requirement("report", "jinja2")], {"bokeh": "2.0"}.get)
    assert found[0].reason == (
        "bokeh 2.0 is not >=3.8.2, jinja2 is not installed: pip install 'rmm-uvm[report]'"
    )


def test_larger_package_does_for_the_smaller_one() -> None:
    needed = [Requirement("mortgage", "xgboost-cpu", ((">=", "3.0"),))]
    assert extras(needed, {"xgboost": "3.1"}.get)[0].detail == "xgboost 3.1"
    assert not extras(needed, {"xgboost": "2.1"}.get)[0].available

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What extras need, and how a version that does not do is told."""

from __future__ import annotations

from importlib import metadata

import pytest

from rmm_uvm.doctor.extras import ADDED, PURPOSES, extras
from rmm_uvm.support import optional_packages
from rmm_uvm.support import requirements as requirements_module
from rmm_uvm.support.optional_packages import (
    ADDITIONS,
    Requirement,
    parse_requirement,
    requirements,
    too_old,
)
from rmm_uvm.support.requirements import install_extra

from ...support.projects import CONTENTS, extras_of

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


@pytest.mark.parametrize("distribution", CONTENTS)
def test_installed_package_says_what_pyproject_does(distribution: str) -> None:
    extras_there = extras_of(distribution)
    asked = [each for each in requirements() if each.distribution == distribution]
    told = {(each.extra, each.package) for each in asked if each.package != distribution}
    assert {extra for extra, _ in told} == set(extras_there)
    for extra, lines in extras_there.items():
        assert sum(one == extra for one, _ in told) == len(lines)


def test_every_extra_for_users_has_a_purpose() -> None:
    there = {*extras_of("rmm-uvm"), *ADDED} - {"test"}
    assert set(PURPOSES) == there
    assert sorted(ADDED.values()) == [
        (name, extra) for name, offered in ADDITIONS.items() for extra in offered
    ]
    assert all(set(extras_of(name)) == set(offered) for name, offered in ADDITIONS.items())


def test_requirements_of_a_package_that_is_not_installed_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert requirements() == ()


def test_addition_that_is_not_installed_is_what_its_extras_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = metadata.requires

    def without_it(name: str) -> list[str] | None:
        if name == "rmm-uvm-mortgage":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "requires", without_it)
    found = {each.name: each for each in extras(requirements(), lambda name: None)}
    assert found["mortgage-gpu"].reason == (
        "rmm-uvm-mortgage is not installed: pip install 'rmm-uvm-mortgage[gpu]'"
    )
    assert not found["mortgage"].available


def test_too_old_names_package_and_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_packages, "installed_version", lambda name: "0.1")
    assert too_old("report") == "bokeh 0.1 is not >=3.8.2: pip install 'rmm-uvm[report]'"
    told = too_old("cpu", "pandas", "pyarrow", distribution="rmm-uvm-mortgage")
    assert told.startswith("pandas 0.1 is not >=2.2, pyarrow 0.1 is not >=17: ")
    assert told.endswith("pip install 'rmm-uvm-mortgage[cpu]'")


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
    needed = [Requirement("cpu", "xgboost-cpu", ((">=", "3.0"),), "rmm-uvm-mortgage")]
    assert extras(needed, {"xgboost": "3.1"}.get)[0].detail == "xgboost 3.1"
    assert not extras(needed, {"xgboost": "2.1"}.get)[0].available


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("dask", "conda install dask-cuda distributed-ucxx bokeh"),
        ("torch", "conda install pytorch"),
        ("gpu", "conda install cudf cupy"),
        ("unknown", "pip install 'rmm-uvm[unknown]'"),
    ],
)
def test_beside_rmm_of_conda_its_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, extra: str, command: str
) -> None:
    lines = [
        "rmm>=26.10",
        "dask-cuda>=26.10; extra == 'dask'",
        "distributed-ucxx-cu13; extra=='dask'",
    ]
    lines += ["cudf-cu12>=26.10; extra == 'gpu'", "cupy-cuda13x; extra == 'gpu'"]
    lines += ['bokeh>=3.8.2; extra == "dask"', 'torch>=2.9; extra == "torch"']
    versions = {"rmm-uvm": "0.1.0", "rmm": "26.10.00"}
    monkeypatch.setattr(requirements_module, "installed_version", versions.get)
    monkeypatch.setattr(metadata, "requires", lambda _: lines)
    assert install_extra(extra) == command
    assert install_extra("cpu", "rmm-uvm-mortgage") == "pip install 'rmm-uvm-mortgage[cpu]'"

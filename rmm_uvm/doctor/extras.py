# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which optional packages are installed, and new enough. A pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rmm_uvm.doctor.facts import Feature
from rmm_uvm.support.optional_packages import OURS, Requirement

__all__ = ["ADDED", "PURPOSES", "extras"]

PURPOSES = {
    "cudf": "data frames on the GPU, in managed memory",
    "cupy": "arrays on the GPU, in managed memory",
    "torch": "training past GPU memory",
    "dask": "workers on several GPUs, their page and report",
    "report": "reports and memory plans as HTML",
    "prometheus": "metrics for Prometheus",
    "jupyter": "%%uvm and charts in notebooks",
    "attribution": "why data moved",
    "mortgage": "the mortgage pipeline without a GPU",
    "mortgage-gpu": "the mortgage pipeline on a GPU",
}
"""The use of each extra. One that is not named here is for developing rmm-uvm."""

ADDED = {"mortgage": ("rmm-uvm-mortgage", "cpu"), "mortgage-gpu": ("rmm-uvm-mortgage", "gpu")}
"""Extras of what adds to rmm-uvm, by the names that they have here."""

_ALSO_BY = {"xgboost-cpu": "xgboost"}
"""Packages that do for another one: they have all that it has."""

Installed = Callable[[str], str | None]
"""Returns the installed version of a distribution, or None."""


def extras(requirements: Iterable[Requirement], installed: Installed) -> tuple[Feature, ...]:
    """Return for each extra whether all that it needs is there, in the order of `PURPOSES`.

    Parameters
    ----------
    requirements : iterable of Requirement
    installed : callable
        Returns the installed version of a distribution, or None.
    """
    needed: dict[tuple[str, str], list[Requirement]] = {}
    for requirement in requirements:
        needed.setdefault((requirement.distribution, requirement.extra), []).append(requirement)
    return tuple(
        _extra(name, purpose, needed[extra], installed)
        for name, purpose in PURPOSES.items()
        if (extra := ADDED.get(name, (OURS, name))) in needed
    )


def _extra(name: str, purpose: str, needed: list[Requirement], installed: Installed) -> Feature:
    found = [(each, *_found(each.package, installed)) for each in needed]
    problems = [problem for each, _, version in found if (problem := each.problem(version))]
    if problems:
        reason = f"{', '.join(problems)}: {needed[0].remedy}"
        return Feature(name, name, purpose, available=False, reason=reason)
    detail = ", ".join(f"{package} {version}" for _, package, version in found)
    return Feature(name, name, purpose, available=True, detail=detail)


def _found(package: str, installed: Installed) -> tuple[str, str | None]:
    """Return the package that is there, or another one that does for it, and its version."""
    version = installed(package)
    if version is None and package in _ALSO_BY:
        other = _ALSO_BY[package]
        return (other, version) if (version := installed(other)) is not None else (package, None)
    return package, version

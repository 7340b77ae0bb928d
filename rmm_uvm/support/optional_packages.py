# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The packages that extras need, of rmm-uvm and of what adds to it, and in which versions.

Each pyproject.toml says it once: asked here is what installed distributions say of themselves.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from importlib import metadata

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.support.requirements import (
    install_extra,
    installed_version,
    own_distribution,
    parse_version,
)

__all__ = [
    "ADDITIONS",
    "OURS",
    "Requirement",
    "check_html",
    "parse_requirement",
    "requirements",
    "too_old",
]

OURS = own_distribution()
"""The distribution that rmm-uvm is installed as."""

ADDITIONS = {"rmm-uvm-mortgage": ("cpu", "gpu")}
"""Distributions that add to rmm-uvm, and their extras."""


@dataclass(frozen=True)
class Requirement:
    """A package that an extra needs.

    Attributes
    ----------
    extra : str
    package : str
        Name of the distribution.
    bounds : tuple of (str, str)
        Operators and versions, such as ``(">=", "3.8.2")``; all have to hold.
    distribution : str
        Whose extra it is.
    """

    extra: str
    package: str
    bounds: tuple[tuple[str, str], ...] = ()
    distribution: str = OURS

    @property
    def remedy(self) -> str:
        """The command that installs the extra."""
        return install_extra(self.extra, self.distribution)

    def problem(self, version: str | None) -> str:
        """Return what is wrong with a version, None for a missing package; empty if nothing is."""
        if version is None:
            return f"{self.package} is not installed"
        if all(_holds(version, *bound) for bound in self.bounds):
            return ""
        wanted = ",".join(operator + bound for operator, bound in self.bounds)
        return f"{self.package} {version} is not {wanted}"


def parse_requirement(text: str, distribution: str = OURS) -> Requirement | None:
    """Return a line of a distribution's requirements; None if no extra needs it.

    Examples
    --------
    >>> parse_requirement('bokeh>=3.8.2; extra == "report"')
    Requirement(extra='report', package='bokeh', bounds=(('>=', '3.8.2'),), distribution='rmm-uvm')
    >>> parse_requirement("click>=8.1") is None
    True
    """
    needed, _, marker = text.partition(";")
    extra = re.search(r"""extra\s*==\s*["']([\w.-]+)["']""", marker)
    name = re.match(r"[\w.-]+", needed.strip())
    if extra is None or name is None:
        return None
    bounds = re.findall(r"(>=|<=|==|<|>)\s*([\w.*]+)", needed)
    return Requirement(extra[1], name[0], tuple(sorted(bounds, reverse=True)), distribution)


def requirements() -> tuple[Requirement, ...]:
    """Return what extras need, of the installed rmm-uvm and then of `ADDITIONS`.

    An addition's extra needs the addition itself first. Nothing if rmm-uvm is not installed.
    """
    found = _requirements_of(OURS)
    if not found:
        return ()
    for distribution, extras in ADDITIONS.items():
        found += [Requirement(extra, distribution, (), distribution) for extra in extras]
        found += _requirements_of(distribution)
    return tuple(found)


def too_old(extra: str, *packages: str, distribution: str = OURS) -> str:
    """Return which packages of an extra are there in a version that does not do, and the remedy.

    Empty if none is. Asked are `packages`, or all of the extra where none are named. What is not
    installed is not told: an import says so, and a module may come another way than as a
    distribution that has a version.
    """
    problems = [
        problem
        for requirement in requirements()
        if (requirement.extra, requirement.distribution) == (extra, distribution)
        and (not packages or requirement.package in packages)
        and (version := installed_version(requirement.package)) is not None
        and (problem := requirement.problem(version))
    ]
    return f"{', '.join(problems)}: {install_extra(extra, distribution)}" if problems else ""


def check_html() -> None:
    """Raise AvailabilityError where a command's ``--html`` could only fail after all the work."""
    if importlib.util.find_spec("bokeh") is None:
        raise AvailabilityError(
            f"--html needs Bokeh, which is not installed: {install_extra('report')}"
        )
    if problem := too_old("report"):
        raise AvailabilityError(f"--html: {problem}")


def _requirements_of(distribution: str) -> list[Requirement]:
    """Return what the extras of an installed distribution need; nothing of one that is not."""
    try:
        lines = metadata.requires(distribution) or ()
    except (metadata.PackageNotFoundError, OSError):
        return []
    read = (parse_requirement(line, distribution) for line in lines)
    return [each for each in read if each is not None]


def _holds(version: str, operator: str, bound: str) -> bool:
    have, want = parse_version(version), parse_version(bound)
    if operator == "==" and bound.endswith(".*"):
        return have[: len(want)] == want
    length = max(len(have), len(want))
    have, want = (each + (0,) * (length - len(each)) for each in (have, want))
    return {
        ">=": have >= want,
        "<=": have <= want,
        "==": have == want,
        ">": have > want,
        "<": have < want,
    }[operator]

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""docs/measure/environments.md is true: each of its cells is tried, and nothing else is."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .columns import COLUMNS
from .hidden import LIBRARIES, any_library, no_driver, require_hidden
from .machines import MACHINES, NOBODY, THERE
from .packages import MODULES, OLD

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "measure" / "environments.md"
Row = Mapping[str, str]


def table(heading: str) -> list[Row]:
    """Return the rows of the table below a heading, by its columns."""
    part = DOCUMENT.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    names, _, *rows = [[cell.strip() for cell in line] for line in lines]
    assert all(len(row) == len(names) for row in rows)
    return [dict(zip(names, row, strict=True)) for row in rows]


def quoted(cell: str) -> list[str]:
    """Return what stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


MACHINE_ROWS = {
    next(name for name in MACHINES if row["environment"].startswith(name)): row
    for row in table("The machine")
}
PACKAGE_ROWS = {quoted(row["package"])[0]: row for row in table("Optional packages")}
# All is tried in the first test that asks.
pytestmark = pytest.mark.timeout(300)

NOT_OPTIONAL = {"numpy"}  # RMM needs it
VERSIONS = {"missing": None, "too old": OLD}
PACKAGES = [(package, state) for package in PACKAGE_ROWS for state in VERSIONS]


@functools.cache
def results(folder: Path) -> dict[tuple[str, str], Any]:
    """Try everything, in few processes that fork for each environment."""
    wanted: dict[tuple[str, str], Any] = {}
    for name, row in MACHINE_ROWS.items():
        there = THERE.get(name, ())
        wanted["", name] = {"name": name, "tried": quoted(row["tried"]), "there": there}
    for package, state in PACKAGES:
        wanted[package, state] = {
            "name": package,
            "package": package,
            "version": VERSIONS[state],
            "tried": quoted(PACKAGE_ROWS[package]["tried"]),
        }
    (folder / "a.py").write_text("")
    found = {}
    for there in ((), *THERE.values()):
        part = {key: each for key, each in wanted.items() if each.get("there", ()) == there}
        found.update(zip(part, in_child(folder, list(part.values()), there), strict=True))
    if os.geteuid() == 0:  # nobody's board: in /tmp, where nobody may write
        with contextlib.suppress(OSError):
            Path(f"/tmp/rmm-uvm-{NOBODY}").rmdir()
    return found


def in_child(folder: Path, wanted: list[Any], there: tuple[str, ...]) -> Any:
    """Try environments in a process, for which libraries of NVIDIA's driver are `there`."""
    path = [str(Path(__file__).resolve().parents[1]), *filter(None, sys.path)]
    with no_driver(*there) as without:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "environments.child"],
            input=json.dumps(wanted),
            env={
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": ":".join(path),
                "HOME": str(folder),
                "TMPDIR": str(folder),
                **without,
            },
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    return results(tmp_path_factory.mktemp("environments"))


def said(result: Mapping[str, Any]) -> str:
    """Return all that a user would read in an environment, with single spaces."""
    return " ".join(" ".join(one["said"] for one in result.values()).split())


def check_told(result: Mapping[str, Any], cell: str) -> None:
    text = said(result)
    assert [words for words in quoted(cell) if words not in text] == [], text


@pytest.mark.parametrize("name", MACHINES)
def test_machine_that_lacks_something_does_what_its_row_says(
    tried: dict[tuple[str, str], Any], name: str
) -> None:
    row, result = MACHINE_ROWS[name], dict(tried["", name])
    assert "broken" not in result, result["broken"]
    assert result.pop("status") == 0
    way = result.pop("way")
    for column in COLUMNS:
        works = result[column]["works"]
        assert works is (row[column] == "yes"), (column, result[column])
    # Where nothing can be mounted, the system says something else of what cannot be written.
    check_told(result, row["told"].replace(os.strerror(errno.EROFS), way or ""))


@pytest.mark.parametrize(("package", "state"), PACKAGES)
def test_package_that_is_missing_or_too_old_is_told_and_nothing_else_needs_it(
    tried: dict[tuple[str, str], Any], package: str, state: str
) -> None:
    result = dict(tried[package, state])
    assert "broken" not in result, result["broken"]
    assert result.pop("status") == 0
    assert result.pop("way") is None
    for column in COLUMNS:
        assert result[column]["works"], (column, result[column])
    check_told(result, PACKAGE_ROWS[package][f"told where it is {state}"])


@pytest.mark.parametrize(("package", "state"), PACKAGES)
def test_hint_about_a_package_is_one_line(
    tried: dict[tuple[str, str], Any], package: str, state: str
) -> None:
    for expression in quoted(PACKAGE_ROWS[package]["tried"]):
        answer = tried[package, state][expression]
        if not answer["works"]:
            lines = [line for line in answer["said"].splitlines() if "pip install" in line]
            assert len(lines) == 1, answer


def test_every_environment_has_a_row() -> None:
    assert set(MACHINE_ROWS) == set(MACHINES)
    assert set(PACKAGE_ROWS) == set(MODULES)


def packages_of(requirements: Iterable[str]) -> set[str]:
    return {re.split(r"[<>=!~ \[;]", each, maxsplit=1)[0] for each in requirements}


def missing_rows(project: Mapping[str, Any]) -> set[str]:
    """Return which packages pyproject.toml asks for, and have no row though they can be missing."""
    extras = project["optional-dependencies"]
    wanted = set.union(*(packages_of(extras[each]) for each in extras if each != "test"))
    return wanted - NOT_OPTIONAL - packages_of(project["dependencies"]) - set(PACKAGE_ROWS)


def project(file: str = "pyproject.toml") -> Any:
    return tomllib.loads((DOCUMENT.parents[2] / file).read_text())["project"]


@pytest.mark.parametrize("file", ["pyproject.toml", "mortgage/pyproject.toml"])
def test_every_package_that_can_be_missing_has_a_row(file: str) -> None:
    assert missing_rows(project(file)) == set()


def test_package_of_a_new_extra_without_a_row_is_found() -> None:
    changed = project()
    changed["optional-dependencies"]["new"] = ["torch>=2", "nothing-yet>=1"]
    assert missing_rows(changed) == {"nothing-yet"}


def test_packages_that_are_never_missing_are_told() -> None:
    names = {name.removesuffix("-cu13") for name in packages_of(project()["dependencies"])}
    (line,) = [
        each
        for each in DOCUMENT.read_text().split("\n\n")
        if "are always there" in " ".join(each.split())
    ]
    assert [each for each in names | NOT_OPTIONAL if each not in line.lower()] == []


def test_every_package_is_tried_beside_what_the_doctor_says() -> None:
    assert [name for name, row in PACKAGE_ROWS.items() if not quoted(row["tried"])] == []


def test_python_versions_begin_with_the_oldest_that_the_package_installs_on() -> None:
    rows = table("Python")
    assert project()["requires-python"] == f">={rows[0]['Python'].rpartition('.')[0]}"
    assert {row[column] for row in rows for column in COLUMNS} == {"yes"}


def test_row_whose_words_are_not_said_fails() -> None:
    with pytest.raises(AssertionError):
        check_told({"doctor": {"said": "all is well"}}, "`nothing works`")


def test_package_that_is_there_is_not_told(tried: dict[tuple[str, str], Any]) -> None:
    columns = {*COLUMNS, *quoted(PACKAGE_ROWS["torch"]["tried"])}
    text = said({name: one for name, one in tried["torch", "missing"].items() if name in columns})
    assert "bokeh is not installed" not in text


def loads(folder: Path, library: str, **environment: str) -> bool:
    """Return whether a process loads `library` that is in a folder of the loader's."""
    path = ":".join(filter(None, (environment.get("LD_LIBRARY_PATH"), str(folder))))
    load = f"import ctypes; ctypes.CDLL({library!r})"
    done = subprocess.run(
        [sys.executable, "-c", load],
        env={**environment, "LD_LIBRARY_PATH": path},
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_driver_that_a_machine_has_is_hidden_and_loads_where_it_is_not(
    tmp_path: Path, library: str
) -> None:
    shutil.copy(any_library(), tmp_path / library)
    assert loads(tmp_path, library)
    with no_driver() as without:
        assert not loads(tmp_path, library, **without)
    with no_driver(library) as without:
        assert loads(tmp_path, library, **without)


def test_environment_that_reaches_a_driver_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: name)
    with pytest.raises(RuntimeError, match=r"libcuda\.so\.1 can be loaded here"):
        require_hidden()


def test_real_library_is_not_taken_for_the_one_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(cuInit=name))
    with pytest.raises(RuntimeError, match=r"libcuda\.so\.1 can be loaded here"):
        require_hidden(*LIBRARIES)

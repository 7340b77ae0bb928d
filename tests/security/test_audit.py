# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""ci/audit.sh --advisories: what a file of advisories says of packages, and what it cannot say.

Each test has a project of its own, whose packages nobody has, and a file made for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "ci"
# 2026-11-23 12:00 UTC
META = {"$meta": {"timestamp": 1795435200}}
NOTHING = {"rmm-uvm-nobody": ["<1"]}


class Project:
    """A project with requirements, and an environment with packages beside those of the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "insecure.json"
        self.packages = folder / "packages"
        self.packages.mkdir()
        (folder / "ci").mkdir()
        for name in ("audit.sh", "audit_file.py", "prerequisites.sh"):
            shutil.copy(SCRIPTS / name, folder / "ci")
        self.require()

    def require(self, *, package: str = "", extra: str = "", build: str = "") -> None:
        (self.folder / "pyproject.toml").write_text(
            f"[build-system]\nrequires = {[build] if build else []}\n"
            f"[project]\ndependencies = {[package] if package else []}\n"
            f"[project.optional-dependencies]\nplots = {[extra] if extra else []}\n"
        )

    def install(self, name: str, version: str) -> None:
        folder = self.packages / f"{name}-{version}.dist-info"
        folder.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\n"
        (folder / "METADATA").write_text(text + (f"Version: {version}\n" if version else ""))

    def audit(self, advisories: Any = None, *words: str) -> tuple[int, str]:
        """Return exit status and output of an audit with `advisories`, if there are any."""
        if advisories is not None:
            self.file.write_text(json.dumps(advisories))
        done = subprocess.run(
            ["bash", "ci/audit.sh", *(words or ("--advisories", self.file.name, sys.executable))],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": f"{self.packages}:{os.environ.get('PYTHONPATH', '')}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.returncode, done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def refused(project: Project, advisories: Any = None, *words: str) -> str:
    """Return the one line of an audit that could ask nothing."""
    status, said = project.audit(advisories, *words)
    assert status == 2
    assert said.count("\n") == 1
    assert said.startswith("audit: nothing could be asked: ")
    return said


def test_installed_version_that_is_affected_is_told_with_its_specifiers(project: Project) -> None:
    project.install("uvmtest", "1.5")
    status, said = project.audit({**META, "uvmtest": ["<1.2", "<2.0", ">=1.4,<1.6"]})
    assert status == 1
    assert "audit: advisories of 2026-11-23 about 1 packages\n" in said
    assert "packages are installed, 1 of them in the file, 1 affected\n" in said
    assert "audit: uvmtest 1.5 (installed): affected: <2.0 or >=1.4,<1.6\n" in said


def test_installed_version_that_is_safe_is_counted_and_not_told(project: Project) -> None:
    project.install("uvmtest", "2.0")
    status, said = project.audit({"uvmtest": ["<1.2", "<2.0", ">=2.1,<2.2"]})
    assert status == 0
    assert "packages are installed, 1 of them in the file, 0 affected\n" in said
    assert "uvmtest" not in said


def test_every_installed_package_is_counted_but_for_our_own(project: Project) -> None:
    def count() -> int:
        said = project.audit({"rmm_uvm": [">=0"], **NOTHING})
        assert said[0] == 0
        return int(said[1].partition(" packages are installed")[0].rpartition(" ")[2])

    before = count()
    project.install("uvmtest", "1.0")
    project.install("rmm-uvm", "1.0")
    assert count() == before + 1


@pytest.mark.parametrize("spelling", ["uvm-test", "UVM_Test", "Uvm.Test"])
def test_names_match_in_other_spellings(project: Project, spelling: str) -> None:
    project.install("Uvm_test", "1.0")
    project.require(extra="uvm.TEST>=1.0")
    status, said = project.audit({spelling: ["<2"]})
    assert status == 1
    assert said.count(": affected: <2\n") == 2


def test_one_package_in_two_spellings_of_the_file_has_both_lists(project: Project) -> None:
    project.install("uvmtest", "1.0")
    assert "affected: <2 or <3\n" in project.audit({"uvmtest": ["<2"], "UvmTest": ["<3"]})[1]


@pytest.mark.parametrize("where", ["package", "extra", "build"])
def test_lowest_allowed_version_that_is_affected_is_told_with_who_allows_it(
    project: Project, where: str
) -> None:
    project.require(**{where: "uvmtest>=3.4,<5"})
    status, said = project.audit({"uvmtest": ["<3.8.2"]})
    name = {"extra": "plots"}.get(where, where)
    assert status == 1
    assert (
        "audit: 1 requirements, each at its lowest version, 1 of them in the file, 1 affected\n"
        in said
    )
    assert f"audit: uvmtest 3.4 (uvmtest<5,>=3.4 in {name}): affected: <3.8.2\n" in said


def test_lowest_allowed_version_that_is_safe_is_not_told(project: Project) -> None:
    project.require(package="uvmtest>=3.8.2")
    assert project.audit({"uvmtest": ["<3.8.2"]})[0] == 0


@pytest.mark.parametrize(
    ("bounds", "lowest"),
    [
        *(("==26.10.*", "26.10"), ("==1.5", "1.5"), ("~=2.2", "2.2"), (">1.0", "1.0")),
        *((">=1,>=1.10,>=1.9", "1.10"), (">=1,!=1.0", "1"), ("", "0"), ("<3", "0")),
    ],
)
def test_lowest_version_of_all_kinds_of_bounds(project: Project, bounds: str, lowest: str) -> None:
    project.require(package=f"uvmtest{bounds}; python_version > '3'")
    assert f"audit: uvmtest {lowest} (" in project.audit({"uvmtest": [">=0"]})[1]


@pytest.mark.parametrize(
    ("version", "line", "status"),
    [
        ("3.8.2rc1", "<3.8.2", 1),  # may lack what 3.8.2 mended
        ("3.8.2rc1", "<3.8", 0),
        ("3.8.2", "<3.8.2", 0),
        ("3.8.2.dev3", ">=3.8,<4", 1),
        ("3.8.post1", ">3.8,<3.9", 1),
        ("3.8+cpu", ">3.8", 0),
        ("3.8+cpu", "==3.8", 1),
    ],
)
def test_versions_that_are_no_plain_releases_are_compared_by_their_order(
    project: Project, version: str, line: str, status: int
) -> None:
    project.install("uvmtest", version)
    assert project.audit({"uvmtest": [line]})[0] == status


def test_specifier_that_is_none_is_told_and_the_others_are_compared(project: Project) -> None:
    project.install("uvmtest", "1.0")
    status, said = project.audit({"uvmtest": [">=1,<2.g3", "<1.5"]})
    assert status == 1
    assert "audit: uvmtest 1.0 (installed): not compared: Invalid specifier: '<2.g3'" in said
    assert "audit: uvmtest 1.0 (installed): affected: <1.5\n" in said
    assert project.audit({"uvmtest": [">=1,<2.g3"]})[0] == 0


@pytest.mark.parametrize("version", ["", "unknown"])
def test_installed_version_that_is_none_is_told(project: Project, version: str) -> None:
    project.install("uvmtest", version)
    status, said = project.audit({"uvmtest": ["<1"]})
    assert status == 0
    assert "(installed): not compared: Invalid version" in said


def test_specifier_of_a_package_that_nobody_has_is_not_told(project: Project) -> None:
    assert "not compared" not in project.audit({"uvmtest": ["<2.g3"]})[1]


@pytest.mark.parametrize("meta", [{}, {"timestamp": None}, {"timestamp": 1e300}, []])
def test_file_without_a_time_is_of_an_unknown_day(project: Project, meta: Any) -> None:
    status, said = project.audit({"$meta": meta, **NOTHING})
    assert status == 0
    assert "audit: advisories of an unknown day about 1 packages\n" in said


@pytest.mark.parametrize("content", [{}, META, [], "text", None])
def test_file_that_names_no_package_is_refused(project: Project, content: Any) -> None:
    project.file.write_text(json.dumps(content))
    assert "names no package; name a copy of safety-db's" in refused(project)


@pytest.mark.parametrize("lines", [{"specs": ["<1"]}, "<1", [{"specs": ["<1"]}], None])
def test_file_of_another_shape_is_refused(project: Project, lines: Any) -> None:
    said = refused(project, {**NOTHING, "uvmtest": lines})
    assert "uvmtest has no list of specifiers; name safety-db's insecure.json" in said


@pytest.mark.parametrize("content", [b'{"uvmtest": [', b"\xff\xfe", b"[" * 100_000])
def test_file_that_is_broken_is_refused(project: Project, content: bytes) -> None:
    project.file.write_bytes(content)
    assert "insecure.json is no JSON (" in refused(project)


def test_empty_file_is_refused(project: Project) -> None:
    project.file.write_bytes(b"")
    assert "insecure.json names no package" in refused(project)


def test_file_that_is_not_there_or_a_folder_is_refused(project: Project) -> None:
    assert "insecure.json: No such file or directory; name a copy" in refused(project)
    project.file.mkdir()
    assert "insecure.json: Is a directory; name a copy" in refused(project)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--advisories",), "--advisories needs a file"),
        (("--advisories", "a", "b", "c"), "too many arguments"),
        (("--advisories", "a", "nowhere/python"), "there is no nowhere/python: run ci/test.sh"),
        (("--advisories", "a"), "build/venv-test/bin/python: run ci/test.sh first"),
    ],
)
def test_words_that_ask_nothing_are_refused(
    project: Project, words: tuple[str, ...], reason: str
) -> None:
    assert reason in refused(project, NOTHING, *words)


def test_environment_without_packaging_is_refused(project: Project) -> None:
    (project.packages / "packaging.py").write_text("raise ImportError")
    assert "has no packaging: install it there" in refused(project, NOTHING)

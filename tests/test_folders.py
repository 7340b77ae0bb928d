# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The unit tests of a folder of the package lie in the folder of that name; names are short."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
OTHERS = {"benchmarks", "ci", "docs", "mortgage"}  # folders of the repository


def misplaced(unit: Path, package: Path) -> list[str]:
    """Return folders of tests, and tests in none, that are named like nothing of the package."""
    found = {path.relative_to(unit) for path in unit.rglob("test_*.py")}
    folders = {path.parent for path in found if path.parent.name}
    wrong = [
        str(folder)
        for folder in folders
        if not (package / folder).is_dir() and str(folder) not in OTHERS
    ]
    modules = {path.stem for path in package.glob("*.py")} | {"package"}
    loose = {path.stem.removeprefix("test_") for path in found if not path.parent.name}
    return sorted([*wrong, *(loose - modules)])


def test_folders_of_unit_tests_are_those_of_the_package() -> None:
    assert misplaced(REPOSITORY / "tests/unit", REPOSITORY / "rmm_uvm") == []


def test_misplaced_tests_are_found(tmp_path: Path) -> None:
    unit, package = tmp_path / "unit", tmp_path / "package"
    for path in ("a/b/c.py", "errors.py"):
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).touch()
    for path in ("a/b/test_c.py", "ci/test_d.py", "test_errors.py", "test_package.py"):
        (unit / path).parent.mkdir(parents=True, exist_ok=True)
        (unit / path).touch()
    assert misplaced(unit, package) == []
    for path in ("a/e/test_f.py", "test_g.py"):
        (unit / path).parent.mkdir(parents=True, exist_ok=True)
        (unit / path).touch()
    assert misplaced(unit, package) == ["a/e", "g"]


def test_names_of_tests_are_under_80_characters() -> None:
    names = [
        name
        for path in (REPOSITORY / "tests").rglob("*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    ]
    assert [name for name in names if len(name) >= 80] == []
    assert len(names) > 4000

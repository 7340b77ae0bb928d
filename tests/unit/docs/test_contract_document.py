# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""contract.md: every test of RMM's in it has one here that exists, or a reason for none."""

from __future__ import annotations

import ast
import importlib.metadata
import re
from pathlib import Path

import pytest
import rmm
from packaging.specifiers import SpecifierSet
from packaging.version import Version

REPOSITORY = Path(__file__).resolve().parents[3]
DOCUMENT = (REPOSITORY / "docs" / "understand" / "contract.md").read_text()
CHAINS = (REPOSITORY / "tests" / "contract" / "conftest.py").read_text()
FEWEST_ROWS = 50  # RMM's tests of memory resources: a table that is not read has none
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows(text: str) -> dict[str, str]:
    """Return what is here by RMM's test; raise if one is there twice."""
    found = re.findall(
        r"^\| `(test_\w+\.py::test_\w+)` \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE
    )
    if len(dict(found)) != len(found):
        raise ValueError("a test of RMM's is there twice")
    return dict(found)


def functions(file: Path) -> set[str]:
    """Return the names of a file's functions; none of a file that is not there."""
    if not file.is_file():
        return set()
    tree = ast.walk(ast.parse(file.read_text()))
    return {node.name for node in tree if isinstance(node, ast.FunctionDef)}


def what_is_wrong(here: str) -> list[str]:
    """Return what is wrong with the last cell of a row."""
    if here.startswith("none: "):
        return [] if len(here.split()) > 2 else ["no reason"]
    named = NAMED.findall(here)
    wrong = [name for file, name in named if name not in functions(REPOSITORY / file)]
    wrong += [
        chain for chain in re.findall(r"`([\w-]+\([\w()]+\))`", here) if f'"{chain}":' not in CHAINS
    ]
    return wrong if named else ["names no test"]


def test_table_has_rmms_tests_each_once() -> None:
    assert len(rows(DOCUMENT)) >= FEWEST_ROWS
    assert len(rows(DOCUMENT)) == sum(line.startswith("| `test_") for line in DOCUMENT.splitlines())


@pytest.mark.parametrize("theirs", rows(DOCUMENT))
def test_test_of_rmm_has_one_here_that_exists_or_a_reason_for_none(theirs: str) -> None:
    assert what_is_wrong(rows(DOCUMENT)[theirs]) == []


@pytest.mark.parametrize(
    ("here", "wrong"),
    [
        ("`tests/contract/test_gone.py::test_a`", ["test_a"]),
        ("`tests/unit/test_mr.py::test_gone`", ["test_gone"]),
        ("`tests/unit/test_mr.py::test_unknown_mode_is_refused` of `gone(uvm)`", ["gone(uvm)"]),
        ("of `binning(uvm)`", ["names no test"]),
        ("none: why", ["no reason"]),
    ],
)
def test_row_of_a_test_that_is_gone_or_of_no_reason_is_found(here: str, wrong: list[str]) -> None:
    assert what_is_wrong(here) == wrong


def test_reasons_that_are_above_are_those_of_the_last_row_with_one() -> None:
    reasons = [here.removeprefix("none: ") for here in rows(DOCUMENT).values() if "none: " in here]

    assert reasons[0] != "as above"
    assert "as above" in reasons


def run_against(text: str) -> tuple[str, str]:
    """Return RMM's version and commit that the cases run against, as the document says."""
    (found,) = re.findall(
        r"^- They run against rmm-cu13 ([\d.]+), built from (\w{40})", text, re.MULTILINE
    )
    return found


def installed() -> tuple[str, str]:
    commit = (Path(rmm.__file__).parent / "GIT_COMMIT").read_text().strip()
    return importlib.metadata.version("rmm-cu13"), commit


def test_document_names_the_commit_of_its_rmm() -> None:
    version, commit = run_against(DOCUMENT)
    assert Version(version) in SpecifierSet("==26.10.*")
    if version == installed()[0]:  # where RMM has mended something meanwhile, that is tested too
        assert commit == installed()[1]


def test_document_that_names_the_rmm_that_the_cases_follow_is_refused() -> None:
    (followed,) = re.findall(r"^- The cases follow (\w{40}),", DOCUMENT, re.MULTILINE)

    assert run_against(DOCUMENT.replace(installed()[1], followed)) != installed()

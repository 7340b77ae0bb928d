# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every snippet of the documents is checked as far as it can be without running it.

Examples with ``>>>`` are run by `test_documents.py`, notebooks by `test_notebooks.py`, other Python
by `test_snippets_run.py`, commands by `test_snippet_commands.py`, or asked for by
`test_snippet_lines.py`; YAML and TOML are for `test_snippet_settings.py`. Here Python has to name
what there is, also where it is not reached when it is run.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Any

import pytest

from ...support.snippets import CODE, DOCUMENTS, REPOSITORY, SNIPPETS, Snippet


def resolved(name: str) -> Any:
    """Return what a dotted name of ours stands for; AttributeError if nothing."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:place]))
    return value


def check_names(text: str) -> int:
    """Resolve the names of ours in Python text, and look for the keywords of calls; count names."""
    count = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rmm_uvm"):
            for name in node.names:
                resolved(f"{node.module}.{name.name}")
                count += 1
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("rmm_uvm."):
            if isinstance(node.ctx, ast.Load) and "(" not in ast.unparse(node):
                resolved(ast.unparse(node))
                count += 1
        elif isinstance(node, ast.Constant) and re.fullmatch(r"rmm_uvm(\.\w+)+", str(node.value)):
            resolved(str(node.value))
            count += 1
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "client.run":  # of what it runs
                called = ast.unparse(node.args[0])
            if re.fullmatch(r"rmm_uvm(\.\w+)+", called):
                check_keywords(resolved(called), [word.arg for word in node.keywords])
    return count


def check_keywords(function: Any, keywords: list[str | None]) -> None:
    parameters = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    assert [word for word in keywords if word not in parameters] == [], function


@pytest.mark.parametrize("snippet", CODE, ids=lambda one: one.document)
def test_python_names_what_there_is(snippet: Snippet) -> None:
    assert check_names(snippet.text) > 0


def test_snippets_are_of_kinds_that_are_checked() -> None:
    assert {one.kind for one in SNIPPETS} <= {"", "bash", "python", "text", "toml", "yaml"}


@pytest.mark.parametrize(
    "text",
    ["rmm_uvm.reinitialise()", "rmm_uvm.reinitialize(pool=1)", "from rmm_uvm.mr import Pool"],
)
def test_name_or_keyword_that_is_none_is_found(text: str) -> None:
    with pytest.raises((AttributeError, ImportError, AssertionError)):
        check_names(f"import rmm_uvm\n{text}")


def test_every_document_is_looked_at() -> None:
    folders = ("benchmarks", "ci", "cpp", "docs", "rmm_uvm", "tests")
    found = {path for name in folders for path in (REPOSITORY / name).rglob("*.md")}
    found |= set(REPOSITORY.glob("*.md"))
    assert found - set(DOCUMENTS) == {REPOSITORY / "CHANGELOG.md"}  # has nothing to run


@pytest.mark.parametrize("folder", ["use", "use/libraries", "understand", "measure"])
def test_index_of_a_folder_of_documents_lists_each(folder: str) -> None:
    index = REPOSITORY / "docs" / folder / "README.md"
    listed = re.findall(r"^(?:\| |- )\[[^]]*\]\((.*?)\)", index.read_text(), re.MULTILINE)
    there = {path.name for path in index.parent.glob("*.md")} - {"README.md"}
    assert sorted(there - set(listed)) == []
    assert len(set(listed)) == len(listed)


def missing_documents(text: str) -> list[str]:
    """Return the documents that a source names and that are not there."""
    return [
        name
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", text)
        if not (REPOSITORY / name).exists()
    ]


def test_documents_that_sources_name_are_there() -> None:
    folders = ("benchmarks", "ci", "conda", "cpp", "mortgage", "rmm_uvm", "tests")
    kinds = {".py", ".pyx", ".pyi", ".hpp", ".cpp", ".sh", ".yaml"}
    sources = {path for name in folders for path in (REPOSITORY / name).rglob("*")}
    named = {
        str(path.relative_to(REPOSITORY)): missing_documents(path.read_text())
        for path in sources
        if path.suffix in kinds and path.is_file()
    }
    assert {path: names for path, names in named.items() if names} == {}


def test_document_that_is_not_there_is_found() -> None:
    gone, there = "docs/gone" + ".md", "docs/use/dask.md"
    assert missing_documents(f"see {gone}, {there}") == [gone]


def recipes() -> dict[str, list[str]]:
    """Return the lines of each recipe of CONTRIBUTING, by what it adds."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text().partition("## To add ...")[2]
    parts = re.split(r"^\*\*(.+?)\.\*\*", text, flags=re.MULTILINE)[1:]
    return {
        name: [line for line in lines.splitlines() if line.strip()]
        for name, lines in zip(parts[::2], parts[1::2], strict=True)
    }


def missing_files(lines: list[str]) -> list[str]:
    """Return the files and folders that lines name and that are not there."""
    folders = r"`((?:cpp|rmm_uvm|tests|docs|benchmarks|ci)/[\w./-]+)`"
    named = re.findall(folders, "\n".join(lines))
    return [name for name in named if not (REPOSITORY / name).exists()]


def test_recipes_are_short_and_name_files_that_are_there() -> None:
    found = recipes()
    assert set(found) == {
        *("A memory resource", "A metric", "An eviction policy"),
        *("A setting", "A prefetch mode", "A machine profile"),
    }
    for name, lines in found.items():
        assert 2 < len(lines) < 10, name
        assert missing_files(lines) == [], name


def test_recipe_with_a_file_that_is_not_there_is_found() -> None:
    assert missing_files(["1. `cpp/src/mr/nothing.cpp` and `rmm_uvm/mr.py`"]) == [
        "cpp/src/mr/nothing.cpp"
    ]

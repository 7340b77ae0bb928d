# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every snippet of the documents is run, or checked as far as it can be without what it needs.

Examples with ``>>>`` are run by `test_documents.py`, notebooks by `test_notebooks.py`. Here is the
rest: Python that needs a GPU or a cluster has to name what there is, with keywords that there are;
commands have to exist with their options; YAML and TOML have to be read.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml

from rmm_uvm.cli.main import SUBCOMMANDS

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")),
    *(REPOSITORY / name / "README.md" for name in ("benchmarks", "cpp")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
# Python without `>>>`: why it is not run, by document. What is named RUN is.
RUN = "run here"
PYTHON = {
    "README.md": ["cuDF", "cuDF", "a cluster: test_dask_commands.py runs the like"],
    "configuration.md": ["cudf-polars"],
    "dask.md": ["a cluster: test_dask_commands.py runs the like", "a cluster"],
    "ipc.md": ["CuPy and another process: test_ipc_processes.py runs the like"],
    "mortgage-on-a-cluster.md": ["a cluster", "a cluster: test_mortgage_cluster.py"],
    "training-policies.md": [RUN],
    "training.md": ["a GPU: tests/gpu", "a GPU: tests/gpu"],
}


class Snippet(NamedTuple):
    """A block of a document."""

    document: str
    kind: str
    text: str


def snippets(document: Path) -> Iterator[Snippet]:
    """Yield fenced blocks, and indented lines that are commands as blocks without a kind."""
    text = document.read_text()
    for found in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield Snippet(document.name, found[1], found[2])
    fenced_out = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for line in re.findall(r"^    (\S.*)$", fenced_out, re.MULTILINE):
        yield Snippet(document.name, "", line)


SNIPPETS = [snippet for document in DOCUMENTS for snippet in snippets(document)]
SETTINGS = [one for one in SNIPPETS if one.kind in ("yaml", "toml")]
CODE = [one for one in SNIPPETS if one.kind == "python" and ">>>" not in one.text]


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


def check_command(line: str) -> None:
    """Find the subcommand of ``rmm-uvm`` and its options, or the script, that a line names."""
    words = [word for word in shlex.split(line, comments=True) if "=" not in word.split("-")[0]]
    if not words:
        return
    if words[0] == "rmm-uvm" and len(words) > 1 and not words[1].startswith("-"):
        module, _, attribute = SUBCOMMANDS[words[1]].target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        options = [word.partition("=")[0] for word in words[2:] if word.startswith("--")]
        if words[1] != "run":  # what follows the script is the program's
            assert [each for each in options if len(each) > 2 and each not in known] == [], line
    for word in words[:2]:
        if re.fullmatch(r"(ci|benchmarks|docs)/[\w/]+\.(py|sh)", word):
            assert (REPOSITORY / word).is_file(), line


@pytest.mark.parametrize("snippet", CODE, ids=lambda one: one.document)
def test_python_names_what_there_is(snippet: Snippet) -> None:
    assert check_names(snippet.text) > 0


def test_python_that_is_not_run_says_why() -> None:
    written: dict[str, int] = {}
    for snippet in CODE:
        written[snippet.document] = written.get(snippet.document, 0) + 1
    assert written == {name: len(reasons) for name, reasons in PYTHON.items()}


def test_python_that_can_be_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    for document, reasons in PYTHON.items():
        texts = [one.text for one in CODE if one.document == document]
        for text, reason in zip(texts, reasons, strict=True):
            if reason == RUN:
                exec(compile(text, document, "exec"), {})
                assert capsys.readouterr().out


@pytest.mark.parametrize(
    "snippet", [one for one in SNIPPETS if one.kind in ("", "bash")], ids=lambda one: one.document
)
def test_commands_and_their_options_exist(snippet: Snippet) -> None:
    for line in snippet.text.replace("\\\n", " ").splitlines():
        if line.startswith(("rmm-uvm ", "ci/", "python benchmarks/")):
            check_command(line)


@pytest.mark.parametrize(
    "snippet",
    [one for one in SNIPPETS if one.kind in ("yaml", "toml")],
    ids=lambda one: one.document,
)
def test_settings_can_be_read(snippet: Snippet) -> None:
    if snippet.kind == "toml":
        assert tomllib.loads(snippet.text)
    else:
        assert all(yaml.safe_load_all(snippet.text))


def test_snippets_are_of_kinds_that_are_checked() -> None:
    assert {one.kind for one in SNIPPETS} <= {"", "bash", "python", "text", "toml", "yaml"}


@pytest.mark.parametrize(
    "text",
    ["rmm_uvm.reinitialise()", "rmm_uvm.reinitialize(pool=1)", "from rmm_uvm.mr import Pool"],
)
def test_name_or_keyword_that_is_none_is_found(text: str) -> None:
    with pytest.raises((AttributeError, ImportError, AssertionError)):
        check_names(f"import rmm_uvm\n{text}")


@pytest.mark.parametrize(
    "line", ["rmm-uvm doctor --fast", "rmm-uvm watch", "ci/nothing.sh", "python benchmarks/no.py"]
)
def test_command_that_is_none_is_found(line: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_command(line)


def test_index_of_documents_lists_each() -> None:
    listed = (REPOSITORY / "docs" / "README.md").read_text()
    there = {path.name for path in (REPOSITORY / "docs").glob("*.md")} - {"README.md"}
    assert [name for name in sorted(there) if f"({name})" not in listed] == []


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
        *("A prefetch mode", "A machine profile"),
    }
    for name, lines in found.items():
        assert 2 < len(lines) < 10, name
        assert missing_files(lines) == [], name


def test_recipe_with_a_file_that_is_not_there_is_found() -> None:
    assert missing_files(["1. `cpp/src/mr/nothing.cpp` and `rmm_uvm/mr.py`"]) == [
        "cpp/src/mr/nothing.cpp"
    ]

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The programs of ``docs/lines``: the guilty line comes first, whatever else is changed in them."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "lines"
REPORTS = FOLDER / "reports"
COMMAND = [sys.executable, "-c", "from rmm_uvm.cli.main import main; main()", "run", "--lines"]
MARK = "  # guilty"


class Program(NamedTuple):
    """How the guilty line of a program begins, its fault, and two lines that may swap places."""

    guilty: str
    fault: str
    swapped: tuple[str, str]


FAULTS = {
    "loop": Program("customers = cudf.", "comes back", ("customers = cudf.", "total = 0")),
    "leak": Program("daily.append(", "grows", ("prices = cudf.", "daily = []")),
    "merge": Program("compared = ", "makes the peak", ("sales = cudf.", "targets = cudf.")),
    "training": Program("losses.append(", "grows", ("optimizer = ", "losses = []")),
    "two_libraries": Program("window = ", "comes back", ("sales = cudf.", "total = 0")),
}
NEIGHBOURS = ("fits", "streams")


class Ran(NamedTuple):
    """What was told of a program, and the number of its guilty line."""

    figures: dict[str, Any]
    text: str
    guilty: int


def place_of(lines: list[str], begin: str) -> int:
    (place,) = (n for n, line in enumerate(lines) if line.lstrip().startswith(begin))
    return place


def renamed(text: str) -> str:
    """Give everything that a program names itself another name."""
    nodes = list(ast.walk(ast.parse(text)))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    lines, before = text.splitlines(keepends=True), ""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string in own and before != ".":
            found.append(token)
        before = token.string
    for token in reversed(found):
        (row, begin), (_, end) = token.start, token.end
        line = lines[row - 1]
        lines[row - 1] = f"{line[:begin]}{token.string[::-1]}_9{line[end:]}"
    return "".join(lines)


def reordered(text: str, swapped: tuple[str, str] | None) -> str:
    """Swap lines and functions, go through rounds backwards, and put other lines in between."""
    lines = text.splitlines()
    if swapped is not None:
        one, other = (place_of(lines, begin) for begin in swapped)
        lines[one], lines[other] = lines[other], lines[one]
    text = re.sub(r"in range\((\d+)\)", r"in reversed(range(\1))", "\n".join(lines))
    head, *functions = re.split(r"\n\n\n(?=def )", text)
    *functions, main = functions
    body = [head, *(each.replace(":\n", ":\n    squares = [n * n for n in range(50)]\n", 1)
                    for each in functions[::-1]), main]  # fmt: skip
    return "\n\n\n".join(body)


def with_other_names(text: str, program: Program | None) -> str:
    del program
    return renamed(text)


def in_other_order(text: str, program: Program | None) -> str:
    return reordered(text, program and program.swapped)


def all_at_once(text: str, program: Program | None) -> str:
    return renamed(in_other_order(text, program))


def as_it_is(text: str, program: Program | None) -> str:
    del program
    return text


Change = Callable[[str, Program | None], str]
# By name: what changes, and how large data and card are.
CHANGES: dict[str, tuple[Change, int, str]] = {
    "as it is": (as_it_is, 2, "32MiB"),
    "names": (with_other_names, 2, "32MiB"),
    "sizes": (as_it_is, 3, "44MiB"),
    "order": (in_other_order, 2, "32MiB"),
    "all": (all_at_once, 3, "48MiB"),
}
# torch takes seconds to import.
_IN_PARTS = ("loop", "leak", "merge", "two_libraries")


def cases(names: Iterable[str]) -> Iterator[Any]:
    """Yield a program and what changes in it: everything at once, and at night each alone."""
    for name in names:
        for change in CHANGES:
            if name in _IN_PARTS or change in ("as it is", "all"):
                marks = () if change == "all" else pytest.mark.nightly
                yield pytest.param(name, change, marks=marks)


def ran(folder: Path, name: str, change: str) -> Ran:
    changed, scale, card = CHANGES[change]
    program = FAULTS.get(name)
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    if program is not None:
        lines[place_of(lines, program.guilty)] += MARK
    lines = changed("\n".join(lines) + "\n", program).splitlines()
    guilty = next((n for n, line in enumerate(lines, 1) if line.endswith(MARK)), 0)
    script = folder / (f"{name}.py" if changed in (as_it_is, in_other_order) else "job_17.py")
    script.write_text("\n".join(lines).replace(MARK, ""))
    path = str(FOLDER), os.environ.get("PYTHONPATH")
    options = ["--device", f"simulated:{card}", "--json", "figures.json"]
    done = subprocess.run(
        [*COMMAND, *options, script.name, str(scale)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "figures.json").read_text())
    return Ran(report["lines"], done.stderr, guilty)


@pytest.mark.parametrize(("name", "change"), list(cases(FAULTS)))
def test_the_guilty_line_is_the_first(tmp_path: Path, name: str, change: str) -> None:
    figures, text, guilty = ran(tmp_path, name, change)
    first = figures["culprits"][0]
    assert (first["line"], first["fault"]) == (guilty, FAULTS[name].fault)
    _, _, told = text.partition("rmm_uvm: simulated")
    opening = told.splitlines()[:10]
    assert any(line.startswith(f"1. {Path(first['file']).name}:{guilty} in ") for line in opening)
    assert any(first["told"].partition(",")[0] in line for line in opening)


@pytest.mark.parametrize(("name", "change"), list(cases(NEIGHBOURS)))
def test_a_program_without_a_fault_has_no_guilty_line(
    tmp_path: Path, name: str, change: str
) -> None:
    figures, text, _ = ran(tmp_path, name, change)
    assert figures["culprits"] == []
    assert figures["by_line"]
    assert "look here first" not in text


@pytest.mark.parametrize("name", [*FAULTS, *NEIGHBOURS])
def test_committed_reports_name_the_line_that_is_there(name: str) -> None:
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    culprits = json.loads((REPORTS / f"{name}.json").read_text())["lines"]["culprits"]
    if name in NEIGHBOURS:
        assert culprits == []
    else:
        assert culprits[0]["line"] == 1 + place_of(lines, FAULTS[name].guilty)
        assert culprits[0]["text"] == lines[culprits[0]["line"] - 1].strip()
        assert culprits[0]["fault"] == FAULTS[name].fault

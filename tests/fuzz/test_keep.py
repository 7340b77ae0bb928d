# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Of what fuzzing grew stays what reaches more than the seeds and than what stays already.

In place of atheris stands a module for which an input reaches its words; those that begin with
"line" are lines.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .make_corpus import CORPUS

TESTS = Path(__file__).parents[1]
MERGER = """
import contextlib, sys
from pathlib import Path

def instrument_imports(include):
    return contextlib.nullcontext()

def Setup(arguments, target, custom_mutator=None):
    global control
    (control,) = (Path(one.split("=")[1]) for one in arguments if "-merge_control_file=" in one)

def Fuzz():
    count, _, *paths = control.read_text().splitlines()
    seen = set()
    with control.open("a") as told:
        for number, path in enumerate(paths):
            data = Path(path).read_bytes()
            if data == b"breaks":
                sys.exit(77)
            new = set(data.split(b",")) - seen
            seen |= new
            lines = [word for word in new if word.startswith(b"line")]
            print("STARTED", number, len(data), file=told)
            print("FT", number, *range(len(new)), file=told)
            print("COV", number, *range(len(lines)), file=told)
    assert int(count) == len(paths)
    sys.exit(0)
"""


def kept(
    folder: Path, grown: list[bytes], slow_seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Keep inputs of the target of handles in a folder, of which some may be there already."""
    (folder / "atheris.py").write_text(MERGER)
    work = folder / "work" / "handle" / "grown"
    work.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(grown):
        (work / str(number)).write_bytes(data)
    code = f"import fuzz.keep; fuzz.keep.SLOW_SECONDS = {slow_seconds}; fuzz.keep.main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, str(folder / "work"), str(folder / "kept")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )


def inputs(folder: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in (folder / "kept").rglob("*") if path.is_file())


def test_what_reaches_nothing_new_or_is_of_a_machine_does_not_stay(tmp_path: Path) -> None:
    seed = min((CORPUS / "handle").iterdir()).read_bytes()
    there = tmp_path / "kept" / "handle" / "one"
    there.parent.mkdir(parents=True)
    there.write_bytes(b"there")
    done = kept(tmp_path, [seed, b"new", b"new,newer,newest", b"there,there", b"/home/someone"])

    assert done.returncode == 0, done.stderr
    assert inputs(tmp_path) == [b"new,newer,newest", b"there"]
    assert "handle: 2 inputs, 21 bytes" in done.stdout
    assert "board: 0 inputs" in done.stdout


def test_what_is_slow_stays_only_where_it_reaches_a_new_line(tmp_path: Path) -> None:
    done = kept(tmp_path, [b"more-often", b"line-2"], slow_seconds=-1)

    assert done.returncode == 0, done.stderr
    assert inputs(tmp_path) == [b"line-2"]


@pytest.mark.parametrize("grown", [[b"breaks"], [b"first", b"breaks"]])
def test_input_that_breaks_ends_it_and_nothing_is_lost(tmp_path: Path, grown: list[bytes]) -> None:
    there = tmp_path / "kept" / "handle" / "one"
    there.parent.mkdir(parents=True)
    there.write_bytes(b"there")
    done = kept(tmp_path, grown)

    assert done.returncode == 1
    assert "handle: an input breaks its promises" in done.stderr
    assert inputs(tmp_path) == [b"there"]

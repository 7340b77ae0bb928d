# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps what fuzzing grew, as far as it reaches more than the seeds; `ci/fuzz.sh --keep` starts it.

    PYTHONPATH=tests python -P -m fuzz.keep WORK [FOLDER]     default: tests/fuzz/grown

Of the inputs below WORK and those that are kept already the ones stay that reach a line, or a line
more often, than all before them: small ones first, and of these again those first that reached
most. That is what libFuzzer's own merging does, which cannot start Python anew.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .make_corpus import CORPUS, FOREIGN, GROWN
from .one_target import TARGETS
from .run import LIMITS, fuzz_into

# Of those that take longer only what reaches a new line: all of them are tried whenever CI runs.
SLOW_SECONDS = 0.2


class Reached(NamedTuple):
    """What an input reaches that those before it do not."""

    lines: int
    features: int  # lines, and how often


def reached(name: str, before: Sequence[Path], inputs: Sequence[Path]) -> dict[Path, Reached]:
    """Return what each of a target's inputs reaches, in this order, beyond those `before`."""
    inputs = [path.resolve() for path in (*before, *inputs)]
    with tempfile.TemporaryDirectory() as folder:
        control, log = Path(folder, "control"), Path(folder, "log")
        head = [str(len(inputs)), str(len(before)), *map(str, inputs)]
        control.write_text("\n".join([*head, ""]))
        child = os.fork()
        if child == 0:
            fuzz_into(log, name, [*LIMITS, "-merge_inner=1", f"-merge_control_file={control}"])
        os.waitpid(child, 0)
        told = control.read_text().splitlines()[len(head) :]
        counts: dict[tuple[str, int], int] = {}
        for kind, number, *found in map(str.split, told):
            counts[kind, int(number)] = len(found)
        if ("COV", len(inputs) - 1) not in counts:
            raise SystemExit(f"{name}: an input breaks its promises:\n{log.read_text()[-2000:]}")
    return {
        path: Reached(counts["COV", number], counts["FT", number])
        for number, path in enumerate(inputs)
        if number >= len(before)
    }


def is_slow(name: str, path: Path) -> bool:
    data = path.read_bytes()
    TARGETS[name](data)  # what it imports late
    begin = time.perf_counter()
    TARGETS[name](data)
    return time.perf_counter() - begin > SLOW_SECONDS


def chosen(name: str, folders: Sequence[Path]) -> list[bytes]:
    """Return the inputs in some folders that are worth keeping."""
    seeds = {path.read_bytes() for path in (CORPUS / name).iterdir()}
    found = {path.read_bytes(): path for each in folders for path in sorted(each.glob("*"))}
    files = [path for data, path in found.items() if not FOREIGN.search(data) and data not in seeds]
    before = sorted((CORPUS / name).iterdir())
    files.sort(key=lambda path: (path.stat().st_size, path.name))
    first = reached(name, before, files)
    some = {path: is_slow(name, path) for path, one in first.items() if one.features}
    again = sorted(some, key=lambda path: (some[path], -first[path].features))
    second = reached(name, before, again)
    return [path.read_bytes() for path in again if has_reason(second[path], slow=some[path])]


def has_reason(found: Reached, *, slow: bool) -> bool:
    """Return whether an input reaches enough to be kept."""
    return found.lines > 0 if slow else found.features > 0


def main() -> None:
    work = Path(sys.argv[1])
    kept = Path(sys.argv[2]) if len(sys.argv) > 2 else GROWN
    for name in sorted(TARGETS):
        inputs = chosen(name, [kept / name, work / name / "grown"])
        if inputs:
            (kept / name).mkdir(parents=True, exist_ok=True)
        for path in (kept / name).glob("*"):
            path.unlink()
        for data in inputs:
            (kept / name / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
        print(f"{name}: {len(inputs)} inputs, {sum(map(len, inputs))} bytes", flush=True)


if __name__ == "__main__":
    main()

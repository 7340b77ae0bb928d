# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Instructions of the C++ hot paths: counted by callgrind, beside those that are recorded.

    python3 ci/instruction_counts.py FOLDER [--comparable | --write] [--result FILE]

Counts do not depend on how loaded a machine is, nor on how fast. They do on the compiler, its
flags, the C library and librmm: beside others nothing is compared, and a line says so.
`--comparable` tells just that, before anything is built: status 3 where nothing is compared.
ci/check_instructions.sh builds the program in FOLDER. Needs Python 3.11 and valgrind.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from instruction_build import built_with

RESULT = Path(__file__).parents[1] / "benchmarks" / "results" / "instruction_counts.json"
PROGRAM = Path("cpp", "benchmarks", "instructions", "instruction_counts")
NOT_COMPARABLE = 3
MOST_RISE_FRACTION = 0.1
# The C library chooses its copying functions by processor: these it has on every one.
PLAIN_PROCESSOR = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM"
_FUNCTION = re.compile(r"^fn=\((\d+)\)(?: (.*))?$")
_COST = re.compile(r"^[+\-*\d]\S* (\d+)$")
_COUNTED = re.compile(r"\bhot_path_(\w+)")


def inclusive_counts(profile: str) -> dict[str, int]:
    """Return instructions by counted path, those of all it calls included.

    Parameters
    ----------
    profile : str
        What callgrind writes: below the name of a function lines with its own instructions, and
        after each call those of what was called.
    """
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    path: str | None = None
    for line in profile.splitlines():
        if function := _FUNCTION.match(line):
            number, name = function.groups()
            if name:
                names[number] = name
            counted = _COUNTED.search(names[number])
            path = counted[1] if counted else None
        elif path is not None and (cost := _COST.match(line)):
            counts[path] = counts.get(path, 0) + int(cost[1])
        elif found := re.match(r"^cfn=\((\d+)\) (.*)$", line):
            names[found[1]] = found[2]
    return counts


def per_operation(profile: str, rounds: Mapping[str, int]) -> dict[str, float]:
    """Return instructions an operation of each path.

    Raises
    ------
    ValueError
        If what was run and what was counted are not the same paths.
    """
    counts = inclusive_counts(profile)
    if not rounds or set(counts) != set(rounds):
        raise ValueError(f"counted {sorted(counts)}, run {sorted(rounds)}: a path was inlined?")
    return {name: round(counts[name] / rounds[name], 1) for name in rounds}


def compared(
    now: Mapping[str, float], recorded: Mapping[str, float]
) -> tuple[list[str], list[str], list[str]]:
    """Return a table of both, what rose too much or is missing, and what fell as much."""
    lines = [f"{'instructions an operation':38} {'recorded':>10} {'now':>10} {'ratio':>7}"]
    failed: list[str] = []
    fallen: list[str] = []
    for name in sorted({*now, *recorded}):
        if name not in now or name not in recorded:
            failed.append(f"{name} is {'not recorded' if name in now else 'not counted any more'}")
            continue
        ratio = now[name] / recorded[name]
        lines.append(f"{name:38} {recorded[name]:10.1f} {now[name]:10.1f} {ratio:7.3f}")
        if ratio > 1 + MOST_RISE_FRACTION:
            failed.append(f"{name} rose by {ratio - 1:.0%}")
        elif ratio < 1 - MOST_RISE_FRACTION:
            fallen.append(name)
    return lines, failed, fallen


def counted(program: Path) -> dict[str, float]:
    """Run the program under callgrind and return what an operation of each path executes."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "profile")
        command = [
            *("valgrind", "--tool=callgrind", "-q", "--error-exitcode=9"),
            *("--collect-atstart=no", "--toggle-collect=*::hot_path_*"),
            *(f"--callgrind-out-file={profile}", str(program)),
        ]
        ran = subprocess.run(
            command,
            env={"PATH": "/usr/bin:/bin", "GLIBC_TUNABLES": PLAIN_PROCESSOR},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise SystemExit(f"instructions: {program} ended with {ran.returncode}\n{ran.stderr}")
        rounds = dict(line.split() for line in ran.stdout.splitlines())
        counts = {name: int(number) for name, number in rounds.items()}
        return per_operation(profile.read_text(), counts)


def main(words: Sequence[str] | None = None) -> int:
    """Count and compare, or record; return 1 where a path rose or is missing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--comparable", action="store_true", help="only tell whether counts compare")
    what.add_argument("--write", action="store_true", help="record what is counted")
    parser.add_argument("--result", type=Path, default=RESULT)
    arguments = parser.parse_args(words)
    built = built_with(arguments.folder)
    recorded = json.loads(arguments.result.read_text()) if arguments.result.exists() else {}
    if not arguments.write and recorded.get("built_with") != built:
        was = ", ".join(recorded.get("built_with", {"nothing": "no record"}).values())
        print(
            f"instructions: skipped: recorded with {was}; here is {', '.join(built.values())}; "
            "ci/check_instructions.sh --write records these anew"
        )
        return NOT_COMPARABLE if arguments.comparable else 0
    if arguments.comparable:
        return 0
    now = counted(arguments.folder / PROGRAM)
    if arguments.write:
        report = {
            "benchmark": "instruction_counts",
            "built_with": built,
            "instructions_per_operation": now,
        }
        arguments.result.write_text(json.dumps(report, indent=1) + "\n")
        print(f"instructions: written: {arguments.result.name}")
        return 0
    lines, failed, fallen = compared(now, recorded["instructions_per_operation"])
    print(*lines, sep="\n")
    if fallen:
        print(
            f"instructions: fewer than recorded, to be recorded with --write: {', '.join(fallen)}"
        )
    for line in failed:
        print(f"instructions: {line}: mend it, or record it with --write and say why")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

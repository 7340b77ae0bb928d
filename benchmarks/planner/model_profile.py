# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Where the model spends its time: instructions by function, from Valgrind's callgrind.

    python benchmarks/planner/model_profile.py --json benchmarks/results/model_profile.json

Builds ``cpp/benchmarks/model_operations.cpp`` with the model's sources, and counts what each kind
of work executes: no clock, so that other programs change nothing. Needs g++ and valgrind.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

ROOT = Path(__file__).parents[2]
KINDS = ("prefetched", "faulted", "found")
MOST_FUNCTIONS = 8
_LINE = re.compile(r"^\s*([\d,]+) \(\s*([\d.]+)%\)\s+(?:[^:\s]*:)?(.+?)(?: \[.*\])?$")


def built(folder: Path) -> Path:
    """Build the program and return it."""
    program = folder / "model_operations"
    sources = [
        *sorted((ROOT / "cpp/src/sim").glob("*.cpp")),
        ROOT / "cpp/benchmarks/model_operations.cpp",
    ]
    options = ["-std=c++20", "-O3", "-g1", "-mpopcnt", f"-I{ROOT / 'cpp/include'}"]
    subprocess.run(["g++", *options, *map(str, sources), "-o", str(program)], check=True)
    return program


def functions(program: Path, kind: str, rounds: int) -> dict[str, float]:
    """Return the share of instructions of the functions that execute most, > 0 and <= 1.

    What the program does before its rounds is in both of two runs, and taken out.
    """
    few, many = (_instructions(program, kind, count) for count in (0, rounds))
    spent = {name: count - few.get(name, 0) for name, count in many.items()}
    total = sum(max(count, 0) for count in spent.values())
    most = sorted(spent.items(), key=lambda one: -one[1])[:MOST_FUNCTIONS]
    return {name: round(count / total, 4) for name, count in most if count > 0}


def _instructions(program: Path, kind: str, rounds: int) -> dict[str, int]:
    found = program.with_suffix(f".{kind}.{rounds}")
    counting = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={found}", "-q"]
    subprocess.run([*counting, str(program), kind, str(rounds)], check=True, capture_output=True)
    text = subprocess.run(
        ["callgrind_annotate", "--threshold=100", "--auto=no", str(found)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return parsed(text)


def parsed(text: str) -> dict[str, int]:
    """Return instructions by function from what callgrind_annotate prints."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        matched = _LINE.match(line)
        if matched and "PROGRAM TOTALS" not in line:
            name = matched[3].partition("(")[0].replace("rmm_uvm::sim::", "")
            counts[name] = counts.get(name, 0) + int(matched[1].replace(",", ""))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2, help="of each kind of work")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = built(Path(folder))
        profiles = {kind: functions(program, kind, arguments.rounds) for kind in KINDS}
    report = {"benchmark": "model_profile", "environment": harness.software()}
    arguments.json.write_text(json.dumps({**report, "profiles": profiles}, indent=1) + "\n")
    for kind, shares in profiles.items():
        print(kind)
        for name, share in shares.items():
            print(f"  {share:6.1%}  {name}")


if __name__ == "__main__":
    main()

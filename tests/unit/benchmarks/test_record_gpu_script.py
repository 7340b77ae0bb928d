# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`ci/test_gpu.sh` and `benchmarks/common/record.py` make a result by the same commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .scripts import REPOSITORY, script

table = script("benchmarks", "common/record_table")
RESULTS = REPOSITORY / "benchmarks" / "results"

Calls = dict[str, list[tuple[str, ...]]]


def calls_of(what: str, folder: Path) -> Calls:
    """Run the script with a Python that only keeps its arguments; return those of benchmarks."""
    kept = folder / "calls"
    python = folder / "python"
    python.write_text(
        "#!/bin/bash\n"
        f'printf "%s\\t" "counters=${{RMM_UVM_COUNTERS:-}}" "$@" | tr "\\n" " " >>"{kept}"\n'
        f'echo >>"{kept}"\n'
    )
    python.chmod(0o755)
    environment = {name: each for name, each in os.environ.items() if name != "RMM_UVM_COUNTERS"}
    subprocess.run(
        ["/bin/bash", str(REPOSITORY / "ci" / "test_gpu.sh"), what],
        env={**environment, "PYTHON": str(python), "RMM_UVM_MANAGED_LIMIT": "1GiB"},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    calls: Calls = {}
    for line in kept.read_text().splitlines():
        counters, *words = line.rstrip("\t").split("\t")
        if not words[0].startswith(f"{REPOSITORY}/benchmarks/"):
            continue
        file = next(Path(word) for word in words if word.startswith(str(RESULTS)))
        words = [table.FILE if word == str(file) else word for word in words]
        script_path = str(Path(words[0]).relative_to(RESULTS.parent))
        call = (counters.removeprefix("counters="), script_path, *words[1:])
        calls.setdefault(str(file.relative_to(RESULTS).with_suffix("")), []).append(call)
    return calls


def calls_in_table() -> Calls:
    """Return those of the table, in the same form."""
    return {
        benchmark.result: [
            (dict(benchmark.settings).get("RMM_UVM_COUNTERS", ""), *benchmark.command)
        ]
        for benchmark in table.BENCHMARKS
    }


@pytest.mark.parametrize(
    "what",
    ["benchmarks", "residency", "training", "endurance", "cluster", "neighbors", "others"],
)
def test_commands_of_the_gpu_script_are_those_of_the_table(what: str, tmp_path: Path) -> None:
    found = calls_of(what, tmp_path)

    assert found
    assert found == {name: calls_in_table().get(name) for name in found}

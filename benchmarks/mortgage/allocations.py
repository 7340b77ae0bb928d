# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Record what cuDF allocates in each stage of the mortgage pipeline, on a GPU.

The peaks per stage are what the shadow of `rmm-uvm mortgage` on the simulated device is held
against. Memory comes from a cudaMalloc pool: nothing is managed here.

    python benchmarks/mortgage/allocations.py DATA --parts 1 --json FILE [--log FILE.csv.gz]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import tempfile
from pathlib import Path

import rmm

from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.pipeline import PipelineConfig, run_pipeline


class StageMarks:
    """A `StageObserver` that notes at which line of the allocation log a stage begins and ends."""

    def __init__(self, log: rmm.mr.LoggingResourceAdaptor, file: Path) -> None:
        self._log = log
        self._file = file
        self.marks: list[tuple[int, str, str]] = []

    def _note(self, what: str, name: str) -> None:
        self._log.flush()
        with self._file.open("rb") as lines:
            self.marks.append((sum(1 for _ in lines) - 1, what, name))

    def begin(self, name: str) -> None:
        """Note the beginning."""
        self._note("begin", name)

    def end(self, name: str) -> None:
        """Note the end."""
        self._note("end", name)


def stage_peaks(log: Path, marks: list[tuple[int, str, str]]) -> list[dict[str, object]]:
    """Replay the log: bytes held at the begin and end of each stage, and the most in between."""
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    held_bytes, levels = 0, [0]
    for row in rows:
        size_bytes = int(row["Size"])
        held_bytes += {"allocate": size_bytes, "free": -size_bytes}.get(row["Action"], 0)
        levels.append(held_bytes)
    stages, open_stages = [], {}
    for line, what, name in marks:
        if what == "begin":
            open_stages[name] = line
            continue
        begin = open_stages.pop(name)
        stages.append(
            {
                "stage": name,
                "begin_bytes": levels[begin],
                "peak_bytes": max(levels[begin : line + 1]),
                "end_bytes": levels[line],
                "allocations": sum(r["Action"] == "allocate" for r in rows[begin:line]),
                "allocated_bytes": sum(
                    int(r["Size"]) for r in rows[begin:line] if r["Action"] == "allocate"
                ),
            }
        )
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--pool", default="12GiB")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--train-parts", type=int, default=None)
    parser.add_argument("--features", type=Path)
    arguments = parser.parse_args()
    from rmm_uvm.support.units import parse_bytes

    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / "log.csv")
        size = parse_bytes(arguments.pool)
        pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), size, size)
        log = rmm.mr.LoggingResourceAdaptor(pool, name)
        rmm.mr.set_current_device_resource(log)
        file = Path(log.get_file_name())
        marks = StageMarks(log, file)
        engine = make_engine("cudf")
        engine.observers.append(marks)
        result = run_pipeline(
            PipelineConfig(
                arguments.data,
                parts=arguments.parts,
                train_parts=arguments.train_parts,
                features_path=arguments.features,
            ),
            engine,
        )
        log.flush()
        stages = stage_peaks(file, marks.marks)
        if arguments.log:
            lines = file.read_bytes()
            arguments.log.write_bytes(gzip.compress(lines, 9))
    report = {
        "parts": arguments.parts,
        "stages": stages,
        "marks": marks.marks,
        "result": result.to_json(),
    }
    arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

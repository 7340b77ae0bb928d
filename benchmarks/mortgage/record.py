# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Record the mortgage ETL on a GPU as a trace for the planner, with the ETL's stages.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/mortgage/record.py FILE.trace.gz [--rows 3000000]

cuDF on the managed pool, everything fitting. The quarters go through the ETL one after the other,
once to warm up and once recorded. This is how tests/data/mortgage-h200.trace.gz was made.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import tempfile
from pathlib import Path

import rmm_uvm
from rmm_uvm.drivers import choose_driver
from rmm_uvm.watch.stages import stage
from rmm_uvm_mortgage.data_cache import generated_data
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.generate import GeneratorConfig
from rmm_uvm_mortgage.pipeline import PipelineConfig, run_pipeline

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness


class WatchedStages:
    """Tells the monitor of an engine's stages."""

    def __init__(self) -> None:
        self._open: list[stage] = []

    def begin(self, name: str) -> None:
        """Note that a stage begins."""
        entered = stage(name)
        entered.__enter__()
        self._open.append(entered)

    def end(self, _: str) -> None:
        """Note that it has ended."""
        self._open.pop().__exit__(None, None, None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--quarters", type=int, default=2)
    parser.add_argument("--pool", default="8GiB")
    arguments = parser.parse_args()
    free_bytes, _ = choose_driver().memory()
    harness.require_managed_limit(free_bytes)
    data = generated_data(
        GeneratorConfig(performance_rows=arguments.rows, quarters=arguments.quarters)
    )
    rmm_uvm.reinitialize(arguments.pool, "16GiB")
    pipeline = PipelineConfig(data, train_parts=0)
    run_pipeline(pipeline, make_engine("cudf"))
    engine = make_engine("cudf")
    engine.observers.append(WatchedStages())
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "etl.trace"
        with rmm_uvm.monitor(trace=raw):
            run_pipeline(pipeline, engine)
        with raw.open("rb") as source, gzip.GzipFile(arguments.trace, "wb", 9, mtime=0) as target:
            shutil.copyfileobj(source, target)
        print(f"{raw.stat().st_size} bytes, {arguments.trace.stat().st_size} packed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

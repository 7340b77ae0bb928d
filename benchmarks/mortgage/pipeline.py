# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage pipeline on a GPU, all data fitting: `managed` against `cuda-pool`.

Both in one process, interleaved, after a warm-up of each. Also `managed` with its pool torn down
before PREP, as the original did. A run's seconds are those of its stages; making a pool is given
apart. Nothing is oversubscribed.

    RMM_UVM_MANAGED_LIMIT=16GiB python benchmarks/mortgage/pipeline.py --json FILE [--data DIR]
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path
from typing import Any

from rmm_uvm.drivers import cuda_driver
from rmm_uvm.support.units import parse_bytes
from rmm_uvm_mortgage.data_cache import generated_data
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.generate import GeneratorConfig
from rmm_uvm_mortgage.gpu_run import measure
from rmm_uvm_mortgage.memory import find_memory, gpu_chain
from rmm_uvm_mortgage.pipeline import PipelineConfig
from rmm_uvm_mortgage.run_report import RunReport

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import judged, medians, ratio, require_managed_limit, write_json

VARIANTS = {
    "cuda-pool": ("cuda-pool", False),
    "managed": ("managed", False),
    "managed, torn down": ("managed", True),
    "rmm-managed": ("rmm-managed", False),
}
"""Memory, and whether its pool is torn down before PREP. The cudaMalloc pool stays: all fits.
RMM's own managed pool shows what managed memory costs by itself."""
END_TO_END_BOUND = 1.02
PREP_BOUND = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="data set; by default one is generated")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=100, help="trees")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--pool", default="6GiB", help="first slab of every pool")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    driver = cuda_driver()
    free_bytes, _ = driver.memory()
    require_managed_limit(free_bytes)
    config = GeneratorConfig(performance_rows=arguments.rows)
    pipeline = PipelineConfig(
        arguments.data or generated_data(config), parts=1, rounds=arguments.rounds
    )
    pool_bytes = parse_bytes(arguments.pool)
    engine = make_engine("cudf")
    reports: dict[str, list[RunReport]] = {name: [] for name in VARIANTS}
    pool_seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    names = list(VARIANTS)
    for number in range(arguments.pairs + 1):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            memory, tear_down = VARIANTS[name]
            begin = time.perf_counter()
            chain = gpu_chain(find_memory(memory), driver, pool_bytes)
            made_seconds = time.perf_counter() - begin
            report = measure(
                pipeline, chain, engine, tear_down=tear_down, sample_every_seconds=None
            )
            del chain
            gc.collect()
            check(report, pool_bytes)
            if number:  # the first of each only warms up
                reports[name].append(report)
                pool_seconds[name].append(made_seconds)
                print(f"{number:3} {name:20} {end_to_end_seconds(report):.3f} s", flush=True)
    write_json(arguments.json, "mortgage_pipeline", results(reports, pool_seconds))


def check(report: RunReport, pool_bytes: int) -> None:
    """End the benchmark if a run is not what it should be."""
    if report.pipeline.out_of_memory is not None:
        raise SystemExit(f"{report.memory} ran out of memory: use fewer rows")
    if report.peak_bytes > pool_bytes:
        raise SystemExit(f"the data do not fit the first slab: {report.peak_bytes} bytes at most")


def end_to_end_seconds(report: RunReport) -> float:
    """Return ETL, PREP and TRAIN, a torn-down pool's time included."""
    pipeline = report.pipeline
    return pipeline.etl_seconds + pipeline.prep_seconds + pipeline.train_seconds


def results(
    reports: dict[str, list[RunReport]], pool_seconds: dict[str, list[float]]
) -> dict[str, Any]:
    """Return medians, ratios of pairs, and the verdicts."""
    totals = {name: [end_to_end_seconds(r) for r in runs] for name, runs in reports.items()}
    stages = {name: stage_seconds(runs) for name, runs in reports.items()}
    torn_down = stages["managed, torn down"]
    prep = {
        "kept": stages["managed"]["prep"],
        "torn down": [
            a + b for a, b in zip(torn_down["teardown_pool"], torn_down["prep"], strict=True)
        ],
    }
    digests = {r.pipeline.feature_digest for runs in reports.values() for r in runs}
    one = reports["managed"][0]
    return {
        "verdicts": {
            "end_to_end": judged(ratio(totals, "managed", "cuda-pool"), END_TO_END_BOUND),
            "prep, pool kept / torn down": judged(ratio(prep, "kept", "torn down"), PREP_BOUND),
            "end_to_end, rmm-managed": round(ratio(totals, "rmm-managed", "cuda-pool"), 4),
            "features_are_one": len(digests) == 1,
        },
        "stage_ratios": {
            stage: round(
                ratio(
                    {n: stages[n][stage] for n in ("managed", "cuda-pool")}, "managed", "cuda-pool"
                ),
                4,
            )
            for stage in stages["managed"]
        },
        "stage_median_seconds": {name: medians(seconds) for name, seconds in stages.items()},
        "making_the_pool_median_seconds": medians(pool_seconds),
        "end_to_end_seconds": totals,
        "prep_seconds": prep,
        "migrated_bytes": {
            name: [list(r.migrated_bytes) for r in runs] for name, runs in reports.items()
        },
        "feature_rows": one.pipeline.feature_rows,
        "peak_bytes": one.peak_bytes,
        "auc": one.pipeline.quality.auc if one.pipeline.quality else None,
        "pairs": len(totals["managed"]),
    }


def stage_seconds(runs: list[RunReport]) -> dict[str, list[float]]:
    """Return the wall seconds of each stage, one figure for each run."""
    names = [stage.name for stage in runs[0].stages]
    return {
        name: [next(s.wall_seconds for s in run.stages if s.name == name) for run in runs]
        for name in names
    }


if __name__ == "__main__":
    main()

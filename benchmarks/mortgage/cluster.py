# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage pipeline on two Dask workers with a GPU each, all data fitting: ours against stock.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/mortgage/cluster.py --json FILE [--data DIR]

``ours``: managed pools, data between workers over ``ucxuvm``. ``stock-cuda``: dask-cuda's workers
with RMM's cudaMalloc pool, over stock UCX. Both clusters live at once and run in turn. The ETL is
one task for each quarter, PREP puts a worker's quarters together, XGBoost trains on both GPUs;
seconds are the client's. Every worker may have half of the cap. Nothing is oversubscribed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rmm_uvm.support.units import parse_bytes
from rmm_uvm_mortgage.cluster.report import ClusterRunReport
from rmm_uvm_mortgage.cluster.run import ClusterRun
from rmm_uvm_mortgage.data_cache import generated_data
from rmm_uvm_mortgage.generate import GeneratorConfig
from rmm_uvm_mortgage.pipeline import PipelineConfig

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.cluster.chains import ClusterProcess, make_chain
from benchmarks.common import harness

CHAINS = ("stock-cuda", "ours")
END_TO_END_BOUND = 1.05
STAGES = ("etl", "prep", "train")


def run_once(client: Any, pipeline: PipelineConfig, own_pool: bool) -> ClusterRunReport:  # noqa: FBT001
    """Run the pipeline in the cluster's process."""
    with ClusterRun(client, pipeline, own_pool=own_pool) as run:
        return run.run()


def checked(report: ClusterRunReport, pool_bytes: int) -> ClusterRunReport:
    """End the benchmark if a run is not what it should be."""
    if report.out_of_memory is not None:
        raise SystemExit(f"out of memory: {report.out_of_memory}; use fewer rows")
    if report.lost_workers:
        raise SystemExit(f"lost {', '.join(report.lost_workers)}: see the workers' logs")
    peak_bytes = max(worker.peak_bytes for worker in report.workers)
    if peak_bytes > pool_bytes:
        raise SystemExit(f"the data do not fit the pool: {peak_bytes} bytes at most")
    return report


def seconds_of(report: ClusterRunReport) -> dict[str, float]:
    """Return the seconds of each stage by the client's clock, and of all."""
    stages = (report.etl_seconds, report.prep_seconds, report.train_seconds)
    return {**dict(zip(STAGES, stages, strict=True)), "end to end": sum(stages)}


def results(reports: Mapping[str, Sequence[ClusterRunReport]]) -> dict[str, Any]:
    """Return medians, ratios of pairs, and the verdicts."""
    seconds = {
        stage: {
            name: [seconds_of(report)[stage] for report in runs] for name, runs in reports.items()
        }
        for stage in (*STAGES, "end to end")
    }
    ratios = {stage: harness.ratio(each, "ours", "stock-cuda") for stage, each in seconds.items()}
    every = [report for runs in reports.values() for report in runs]
    ours = reports["ours"][0]
    return {
        "verdicts": {
            "end to end, ours / stock-cuda": harness.judged_at_most(
                ratios["end to end"], END_TO_END_BOUND
            ),
            "features are one": len({report.feature_digest for report in every}) == 1,
        },
        "ratios": {stage: round(value, 4) for stage, value in ratios.items()},
        "medians": {stage: harness.medians(each) for stage, each in seconds.items()},
        "seconds": seconds,
        "workers": len(ours.workers),
        "parts": len(ours.parts),
        "performance_bytes": ours.performance_bytes,
        "feature_rows": ours.feature_rows,
        "training_rows": ours.training_rows,
        "peak_bytes": [worker.peak_bytes for worker in ours.workers],
        "migrated_bytes": [list(report.migrated_bytes) for report in reports["ours"]],
        "auc": {n: [r.quality.auc for r in runs if r.quality] for n, runs in reports.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="data set; by default one is generated")
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--quarters", type=int, default=4)
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each")
    parser.add_argument("--warm-ups", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2, help="a GPU each")
    parser.add_argument("--pool", default="10GiB", help="pool of every worker, of either kind")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    pool_bytes, workers = parse_bytes(arguments.pool), arguments.workers
    harness.require_managed_on_gpus(workers, {"the managed workers": workers * pool_bytes})
    data = arguments.data or generated_data(
        GeneratorConfig(performance_rows=arguments.rows, quarters=arguments.quarters)
    )
    pipeline = PipelineConfig(data.absolute(), rounds=arguments.trees)
    reports: dict[str, list[ClusterRunReport]] = {name: [] for name in CHAINS}
    with contextlib.ExitStack() as stack:
        clusters = {
            name: stack.enter_context(
                ClusterProcess(
                    make_chain(name, cuda_bytes=pool_bytes, managed_bytes=pool_bytes), workers
                )
            )
            for name in CHAINS
        }

        def run(name: str) -> float:
            report = clusters[name].call(run_once, pipeline, name == "ours")
            reports[name].append(checked(report, pool_bytes))
            seconds = seconds_of(report)
            print(f"{name:10}", *(f"{k} {v:.3f} s" for k, v in seconds.items()), flush=True)
            return seconds["end to end"]

        runs = {name: functools.partial(run, name) for name in CHAINS}
        harness.interleaved(runs, arguments.rounds, arguments.warm_ups)
    measured = {name: runs[arguments.warm_ups :] for name, runs in reports.items()}
    found = results(measured)
    harness.write_json(arguments.json, "mortgage_cluster", found)
    return harness.exit_status(found["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())

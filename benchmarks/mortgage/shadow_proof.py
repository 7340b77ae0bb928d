# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hold the simulated mortgage run against cuDF on a GPU, with the same data.

Peaks: the footprint of every stage, unsplit and in 4 parts. Limits: a cudaMalloc pool under RMM's
limiting adaptor must run out at the stage at which the simulated run does, for limits between the
peaks of the stages. No managed memory is used on the GPU.

    RMM_UVM_MANAGED_LIMIT=1GiB python benchmarks/mortgage/shadow_proof.py --json FILE [--data DIR]
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import rmm

from rmm_uvm.drivers import cuda_driver
from rmm_uvm.support.units import format_bytes
from rmm_uvm_mortgage.data_cache import generated_data
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.generate import GeneratorConfig
from rmm_uvm_mortgage.gpu_run import measure
from rmm_uvm_mortgage.memory import Chain, find_memory
from rmm_uvm_mortgage.pipeline import PipelineConfig
from rmm_uvm_mortgage.run import RunConfig, quiet_rmm, run
from rmm_uvm_mortgage.run_report import RunReport

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import require_managed_limit, write_json

ROOM_BYTES = 16 << 30
LARGEST_DEVIATION = 0.15
_BLOCK_BYTES = 2 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="data set; by default one is generated")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    require_managed_limit(cuda_driver().memory()[0])
    quiet_rmm()
    config = GeneratorConfig(performance_rows=arguments.rows)
    data = arguments.data or generated_data(config)
    peaks, limits, xgboost = [], [], []
    for parts in (1, 4):
        pipeline = PipelineConfig(data, parts=parts, rounds=1)
        simulated, real = on_simulated_device(pipeline, ROOM_BYTES), on_gpu(pipeline, ROOM_BYTES)
        peaks += compared_peaks(parts, simulated, real)
        xgboost.append({"parts": parts, **compared_xgboost(simulated, real)})
        etl_only = PipelineConfig(data, parts=parts, train_parts=0)
        for limit_bytes in limits_between(simulated):
            ended = [
                stage_that_failed(report)
                for report in (
                    on_simulated_device(etl_only, limit_bytes),
                    on_gpu(etl_only, limit_bytes),
                )
            ]
            limits.append(
                {
                    "parts": parts,
                    "limit_bytes": limit_bytes,
                    "simulated": ended[0],
                    "gpu": ended[1],
                    "same": ended[0] == ended[1],
                }
            )
            print(f"{parts} parts, {format_bytes(limit_bytes)}: {ended[0]} | {ended[1]}")
    largest = max(abs(row["deviation"]) for row in peaks)
    write_json(
        arguments.json,
        "shadow_proof",
        {
            "verdicts": {
                "largest_deviation": round(largest, 4),
                "must_be_at_most": LARGEST_DEVIATION,
                "peaks_agree": largest <= LARGEST_DEVIATION,
                "same_stage_fails": all(row["same"] for row in limits),
            },
            "peaks": peaks,
            "limits": limits,
            "xgboost": xgboost,
        },
    )


def on_simulated_device(pipeline: PipelineConfig, pool_bytes: int) -> RunReport:
    """Run on a simulated device whose memory is all in a fixed pool."""
    return run(RunConfig(pipeline, "cuda-pool", pool_bytes, pool_bytes))


def on_gpu(pipeline: PipelineConfig, pool_bytes: int) -> RunReport:
    """Run by cuDF from a cudaMalloc pool that RMM's limiting adaptor keeps from growing."""
    limited = rmm.mr.LimitingResourceAdaptor(rmm.mr.CudaMemoryResource(), pool_bytes)
    pool = rmm.mr.PoolMemoryResource(limited, pool_bytes, pool_bytes)
    chain = Chain(find_memory("cuda-pool"), pool, cuda_driver())
    del pool, limited
    # The pool stays for PREP: the card has more memory than the pool.
    report = measure(
        pipeline, chain, make_engine("cudf"), tear_down=False, sample_every_seconds=0.002
    )
    del chain
    gc.collect()
    return report


def compared_peaks(parts: int, simulated: RunReport, real: RunReport) -> list[dict[str, Any]]:
    """Return a row for each stage that allocates in RMM's resource."""
    real_bytes = {stage.name: stage.peak_bytes for stage in real.stages}
    rows = []
    for stage in simulated.stages:
        if stage.name in ("teardown_pool", "train"):
            continue
        deviation = stage.peak_bytes / real_bytes[stage.name] - 1
        rows.append(
            {
                "parts": parts,
                "stage": stage.name,
                "simulated_bytes": stage.peak_bytes,
                "gpu_bytes": real_bytes[stage.name],
                "deviation": round(deviation, 4),
            }
        )
        print(f"{parts} parts, {stage.name:30} {deviation:+.2%}", flush=True)
    return rows


def compared_xgboost(simulated: RunReport, real: RunReport) -> dict[str, int]:
    """Return what XGBoost takes past RMM: as modelled, and as device memory in use rose."""
    spans = {name: (begin, end) for name, begin, end in real.timeline["stages"]}
    begin = spans["prep"][0]
    end = spans["train"][1]
    used = [row[2] for row in real.timeline["samples"] if begin <= row[0] <= end]
    modelled = max(stage.xgboost_peak_bytes for stage in simulated.stages)
    return {"modelled_bytes": modelled, "gpu_rise_bytes": max(used) - used[0]}


def limits_between(report: RunReport) -> Iterator[int]:
    """Yield limits below, between and above the running maxima of the stages' peaks."""
    levels = [0]
    for stage in report.stages:
        if stage.name in ("teardown_pool", "prep", "train"):
            continue
        if stage.peak_bytes > levels[-1] * 1.1:  # closer ones a pool's fragments could swap
            levels.append(stage.peak_bytes)
    for low, high in pairwise([*levels[1:], int(levels[-1] * 1.6)]):
        yield in_blocks((low + high) // 2)


def in_blocks(size_bytes: int) -> int:
    return size_bytes // _BLOCK_BYTES * _BLOCK_BYTES


def stage_that_failed(report: RunReport) -> str:
    ended = report.pipeline.out_of_memory
    return "none" if ended is None else ended.stage


if __name__ == "__main__":
    main()

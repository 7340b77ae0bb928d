# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A cuDF pass (groupby, merge, compare, sort) on each chain: first and steady.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/pool/cudf_pass.py --rows 20000000 --json FILE

The four chains run in one process, interleaved. Input frames live in the chain that works on them.
For a first pass every chain is made anew, pools, input frames and all; kernels are loaded already,
so that the figure is about memory alone.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

import cudf
import cupy
import rmm

from rmm_uvm.drivers import cuda_driver
from rmm_uvm.support.units import parse_bytes

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.chains import make_chain

CHAINS = ("cuda-pool", "rmm-managed", "rmm-prefetch", "managed")


class Pass:
    """The pass on one chain, with input frames of its own."""

    def __init__(self, chain: rmm.mr.DeviceMemoryResource, rows: int) -> None:
        self.chain = chain
        rmm.mr.set_current_device_resource(chain)
        random = cupy.random.default_rng(7)
        self.frame = cudf.DataFrame(
            {
                "key": random.integers(0, rows // 100, rows, dtype=cupy.int32),
                "a": random.random(rows, dtype=cupy.float32),
                "b": random.random(rows, dtype=cupy.float32),
            }
        )
        cupy.cuda.Device().synchronize()

    def __call__(self) -> float:
        """Run the pass once and return its seconds."""
        rmm.mr.set_current_device_resource(self.chain)
        begin = time.perf_counter()
        groups = self.frame.groupby("key", as_index=False).agg({"a": "sum", "b": "mean"})
        merged = self.frame.merge(groups, on="key", suffixes=("", "_group"))
        above = (merged["b"] > merged["b_group"]).sum()
        del merged, groups
        ordered = self.frame.sort_values("a")
        cupy.cuda.Device().synchronize()
        seconds = time.perf_counter() - begin
        assert 0 < int(above) < len(ordered)
        return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--pool", default="7GiB")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--first-rounds", type=int, default=15)
    parser.add_argument("--steady-bounds", type=float, nargs=2, default=(1.01, 1.03))
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--only-steady", action="store_true")
    arguments = parser.parse_args()
    driver = cuda_driver(0)
    limit_bytes = harness.require_managed_limit(driver.memory()[0])
    size_bytes = parse_bytes(arguments.pool)
    if 3 * size_bytes > limit_bytes:
        raise SystemExit("three managed pools have to fit under RMM_UVM_MANAGED_LIMIT")

    def first(name: str) -> float:
        run = Pass(make_chain(name, size_bytes, driver), arguments.rows)
        seconds = run()
        rmm.mr.set_current_device_resource(rmm.mr.CudaMemoryResource())
        del run
        gc.collect()
        return seconds

    passes = {n: Pass(make_chain(n, size_bytes, driver), arguments.rows) for n in CHAINS}
    steady = harness.interleaved(passes, arguments.rounds, warm_ups=4)
    adaptor = passes["managed"].chain
    statistics = {**adaptor.statistics(), "migrated_bytes": driver.migrated_bytes()}
    rmm.mr.set_current_device_resource(rmm.mr.CudaMemoryResource())
    del passes, adaptor
    gc.collect()
    over_managed, over_cuda = arguments.steady_bounds
    verdicts = {
        "steady, ours / Pool(Managed)": harness.judged(
            harness.ratio(steady, "managed", "rmm-managed"), over_managed
        ),
        "steady, ours / Pool(Cuda)": harness.judged(
            harness.ratio(steady, "managed", "cuda-pool"), over_cuda
        ),
        "steady, Prefetch(Pool(Managed)) / Pool(Cuda)": round(
            harness.ratio(steady, "rmm-prefetch", "cuda-pool"), 4
        ),
    }
    results = {"rows": arguments.rows, "pool_bytes": size_bytes, "steady_seconds": steady}
    if not arguments.only_steady:
        runs = {name: (lambda name=name: first(name)) for name in CHAINS}
        firsts = harness.interleaved(runs, arguments.first_rounds, warm_ups=1)
        verdicts["first, ours / Pool(Cuda)"] = harness.judged(
            harness.ratio(firsts, "managed", "cuda-pool"), 1.15
        )
        for name in ("rmm-managed", "rmm-prefetch"):
            verdicts[f"first, {name} / Pool(Cuda)"] = round(
                harness.ratio(firsts, name, "cuda-pool"), 4
            )
        results |= {"first_seconds": firsts, "first_medians": harness.medians(firsts)}
    results |= {
        "steady_medians": harness.medians(steady),
        "our_statistics": statistics,
        "counters_available": bool(driver.counters_available()),
        "verdicts": verdicts,
    }
    harness.write_json(arguments.json, "cudf_pass", results)


if __name__ == "__main__":
    main()

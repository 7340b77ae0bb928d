# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Results that travel between two Dask workers on two GPUs: ours against stock Dask-CUDA.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/cluster/results.py --json FILE

A CuPy array lies on worker A; a task on worker B takes it and reads every byte. Timed in the
client, from submitting that task until its answer is there; and in worker B, fetching alone. All
clusters live at once and take turns, directions alternate, and every array is a new one.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.cluster import tasks
from benchmarks.cluster.chains import ClusterProcess, make_chain
from benchmarks.cluster.exchange import describe_workers, exchange, gb_per_second, run_on_workers
from benchmarks.common import harness

MiB = 1 << 20
CHAINS = ("stock-cuda", "stock-managed", "ours")
SIZES = {"1 GiB": 1024 * MiB, "64 MiB": 64 * MiB, "16 MiB": 16 * MiB, "1 MiB": MiB}
CUDA_BYTES = 4 << 30
MANAGED_BYTES = {"stock-managed": 4 << 30, "ours": 6 << 30}
"""Of one worker: both clusters together stay under 24 GiB."""
SLOW_CHAIN, SLOW_ROUNDS = "stock-managed", 3
LEAST_GB_PER_SECOND = 60.0
LEAST_OF_STOCK = 0.8


def measure(
    clusters: dict[str, ClusterProcess], rounds: int, warm_ups: int
) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Return the times by chain and size, rounds interleaved in an order that turns."""
    numbers = {name: itertools.count() for name in clusters}
    times: dict[str, dict[str, list[dict[str, float]]]] = {
        name: {size: [] for size in SIZES} for name in clusters
    }
    names = list(clusters)
    for size, nbytes in SIZES.items():
        for index in range(-warm_ups, rounds):
            turn = index % len(names)
            for name in names[turn:] + names[:turn]:
                if name == SLOW_CHAIN and not -2 <= index < SLOW_ROUNDS:
                    continue
                taken = clusters[name].call(exchange, next(numbers[name]), nbytes)
                if index >= 0:
                    times[name][size].append(taken)
        for name in names:
            print(f"{size:8} {name:18} {gb_per_second(times[name][size], nbytes):8.2f} GB/s")
    return times


def judge(
    times: dict[str, dict[str, list[dict[str, float]]]], moved: list[dict[str, float]] | None
) -> dict[str, Any]:
    """Return the verdicts on ours, where it ran."""
    if moved is None:
        return {}
    speed = gb_per_second(times["ours"]["1 GiB"], SIZES["1 GiB"])
    verdicts: dict[str, Any] = {
        "1 GiB, ours, GB/s": harness.judged_at_least(speed, LEAST_GB_PER_SECOND)
    }
    for size in SIZES if "stock-cuda" in times else ():
        seconds = {n: [each["client_seconds"] for each in of[size]] for n, of in times.items()}
        faster = harness.ratio(seconds, "stock-cuda", "ours")
        verdicts[f"{size}, speed of ours / stock-cuda"] = (
            round(faster, 4) if size == "1 GiB" else harness.judged_at_least(faster, LEAST_OF_STOCK)
        )
    overflow = sum(each["sent_overflow_bytes"] for each in moved)
    verdicts["managed bytes on the wire path"] = harness.judged_at_most(overflow, 0)
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", nargs="+", default=CHAINS, help="also: stock-cuda-nvlink")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--warm-ups", type=int, default=6, help="three each way")
    parser.add_argument("--ipc-pool-size", default="256MiB")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    harness.require_managed_on_gpus(
        2, {name: 2 * MANAGED_BYTES.get(name, 0) for name in arguments.chains}
    )
    with contextlib.ExitStack() as stack:
        clusters = {
            name: stack.enter_context(
                ClusterProcess(
                    make_chain(
                        name,
                        cuda_bytes=CUDA_BYTES,
                        managed_bytes=MANAGED_BYTES.get(name, 0),
                        ipc_pool_size=arguments.ipc_pool_size,
                    )
                )
            )
            for name in arguments.chains
        }
        workers = {name: each.call(describe_workers) for name, each in clusters.items()}
        times = measure(clusters, arguments.rounds, arguments.warm_ups)
        moved = None
        if "ours" in clusters:
            moved = clusters["ours"].call(run_on_workers, tasks.communication_totals)
    speeds = {
        what: {
            name: {size: gb_per_second(of[size], SIZES[size], what) for size in SIZES}
            for name, of in times.items()
        }
        for what in ("client_seconds", "worker_seconds")
    }
    verdicts = judge(times, moved)
    harness.write_json(
        arguments.json,
        "dask_results",
        {
            "ipc_pool_size": arguments.ipc_pool_size,
            "workers": workers,
            "client_gb_per_second": speeds["client_seconds"],
            "worker_gb_per_second": speeds["worker_seconds"],
            "times": times,
            "communication_totals": moved,
            "verdicts": verdicts,
        },
    )
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())

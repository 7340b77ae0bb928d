# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A program with a cluster of two workers, for `test_dask_cluster.py`: prints one line of JSON.

    python dask_program.py SCENARIO GPUS

In a process of its own, since UCX keeps threads and files until a process ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # workers inherit it

MIB = 1 << 20
MANAGED_BYTES = 1 << 30
# Within a chunk, about one, and many; each in both directions.
SIZES = (4, 1 * MIB, 1 * MIB + 4, 40 * MIB + 4, 200 * MIB)


def exchanged(gpus: int, ipc_pool_size: str | None) -> dict[str, Any]:
    """Pass results of all sizes on in both directions; wrong contents are an error."""
    from benchmarks.cluster import tasks
    from benchmarks.cluster.exchange import exchange, run_on_workers
    from benchmarks.cluster.nannies import nanny_cluster

    devices = [number % gpus for number in range(2)]
    with nanny_cluster(devices, MANAGED_BYTES, {"ipc-pool-size": ipc_pool_size}) as client:
        run_on_workers(client, tasks.keep_pool_warnings)
        for number, nbytes in enumerate(size for size in SIZES for _ in range(2)):
            exchange(client, number, nbytes)
        return {
            "sent_bytes": 2 * sum(SIZES),
            "workers": run_on_workers(client, tasks.describe),
            "totals": run_on_workers(client, tasks.communication_totals),
            "warnings": run_on_workers(client, tasks.kept_pool_warnings),
        }


def plugged_in(gpus: int) -> dict[str, Any]:
    """Register the plugin on workers of Dask-CUDA that run already."""
    from dask_cuda import LocalCUDACluster
    from distributed import Client

    from benchmarks.cluster import tasks
    from benchmarks.cluster.exchange import run_on_workers
    from rmm_uvm.dask import UvmPlugin

    with (
        LocalCUDACluster(
            n_workers=gpus, protocol="ucxuvm", device_memory_limit=0, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        before = run_on_workers(client, tasks.describe)
        plugin = UvmPlugin(initial_pool_size=MANAGED_BYTES, maximum_pool_size=MANAGED_BYTES)
        client.register_plugin(plugin)
        return {"before": before, "after": run_on_workers(client, tasks.describe)}


SCENARIOS = {
    "with pool": lambda gpus: exchanged(gpus, "16MiB"),
    "without pool": lambda gpus: exchanged(gpus, None),
    "plugin": plugged_in,
}

if __name__ == "__main__":
    print(json.dumps(SCENARIOS[sys.argv[1]](int(sys.argv[2]))))

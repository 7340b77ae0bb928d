# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A program with a cluster of dask-cuda, for `test_local_cluster.py`: prints one line of JSON.

    python local_cluster_program.py SCENARIO

In a process of its own, since UCX keeps threads and files until a process ends. Every worker has
the cap on managed memory that this process has.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MIB = 1 << 20
POOL_BYTES = 512 * MIB


def describe(dask_worker: Any) -> dict[str, Any]:
    """Return what a worker has; runs there."""
    import rmm

    import rmm_uvm

    device = rmm_uvm.current_installation().devices[0]
    return {
        "address": dask_worker.address,
        "resource": type(rmm.mr.get_per_device_resource(0)).__name__,
        "simulated": device.info.simulated,
        "maximum_bytes": device.sizes.maximum_bytes,
        "ipc_bytes": device.sizes.ipc_bytes,
        "host_sharers": rmm_uvm.current_installation().arguments["host_sharers"],
        "spills_device": hasattr(getattr(dask_worker.data, "device_buffer", None), "n"),
        "told": dask_worker.metrics["rmm-uvm"](dask_worker)["device_name"],
    }


def push_to_host(dask_worker: Any) -> dict[str, int]:
    """Move data of the pool to the host, and return what Dask sees; runs on a worker."""
    import rmm_uvm

    installation = rmm_uvm.current_installation()
    mr, nbytes = installation.managed_mr, 256 * MIB
    address = mr.allocate(nbytes)
    seen = []
    for where in ("device", "host"):
        mr.driver.prefetch(address, nbytes, where)
        mr.driver.synchronize()
        installation.monitor.snapshot()  # takes a sample
        seen.append(dask_worker.monitor.get_process_memory())
    mr.deallocate(address, nbytes)
    return {"nbytes": nbytes, "on_device": seen[0], "on_host": seen[1]}


def clustered() -> dict[str, Any]:
    """Start a cluster in one line."""
    from distributed import Client

    import rmm_uvm.dask

    with (
        rmm_uvm.dask.local_cluster(
            dashboard_address=":0", initial_pool_size=POOL_BYTES, maximum_pool_size=POOL_BYTES
        ) as cluster,
        Client(cluster) as client,
    ):
        return {
            "kind": type(cluster).__name__,
            "workers": list(client.run(describe).values()),
            "pause": list(client.run(push_to_host).values()),
            "scheduler_plugins": list(cluster.scheduler.plugins),
        }


def with_other_options(**options: Any) -> dict[str, Any]:
    """Start dask-cuda's own cluster with options that fight the pool, or waste work."""
    from dask_cuda import LocalCUDACluster
    from distributed import Client

    arguments = ["--initial-pool-size", str(POOL_BYTES), "--maximum-pool-size", str(POOL_BYTES)]
    try:
        with (
            LocalCUDACluster(
                n_workers=1,
                dashboard_address=":0",
                preload=["rmm_uvm.dask"],
                preload_argv=arguments,
                **options,
            ) as cluster,
            Client(cluster) as client,
        ):
            # Where a worker ends before it has started, dask-cuda's cluster goes on without it.
            logs = client.get_worker_logs().values()
            return {"started": bool(logs), "lines": [line for log in logs for _, line in log]}
    except RuntimeError:
        return {"started": False, "lines": []}


SCENARIOS = {
    "cluster": clustered,
    "rmm options": lambda: with_other_options(rmm_pool_size="256MB", device_memory_limit=0),
    "spilling": lambda: with_other_options(device_memory_limit="256MB"),
}

if __name__ == "__main__":
    print(json.dumps(SCENARIOS[sys.argv[1]]()))

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A cluster of workers on any list of GPUs, several on one too, which `LocalCUDACluster` refuses.

Each worker has a nanny, which starts it anew when it dies, as `dask cuda worker` does.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any

LOCAL_HOST = "127.0.0.1"


@contextlib.contextmanager
def nanny_cluster(
    devices: Sequence[int], managed_bytes: int, settings: dict[str, Any]
) -> Iterator[Any]:
    """Return a client of workers on managed memory, worker i on GPU ``devices[i]``.

    `managed_bytes` is the cap, the first slab and the maximum of each worker's pool; `settings` are
    further ones of ``rmm-uvm``.
    """
    import dask
    from distributed import Client, Nanny, Scheduler, SpecCluster

    common = {"protocol": "ucxuvm", "host": LOCAL_HOST, "dashboard_address": ":0"}
    workers = {
        number: {
            "cls": Nanny,
            "options": {
                **common,
                "nthreads": 1,
                "preload": ["rmm_uvm.dask"],
                "silence_logs": logging.WARNING,
                "env": {
                    "CUDA_VISIBLE_DEVICES": _visible(device),
                    "RMM_UVM_MANAGED_LIMIT": str(managed_bytes),
                },
            },
        }
        for number, device in enumerate(devices)
    }
    sizes = {"initial-pool-size": managed_bytes, "maximum-pool-size": managed_bytes}
    config = {
        "rmm-uvm": sizes | settings,
        "distributed-ucxx.create-cuda-context": True,  # before UCX begins, as Dask-CUDA has it
        # Later the cluster would close the nanny of a worker that is being started anew.
        "distributed.deploy.lost-worker-timeout": "120s",
    }
    scheduler = {"cls": Scheduler, "options": {**common, "port": 0}}
    with (
        dask.config.set(config),
        SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.WARNING) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(len(workers), timeout=180)
        yield client


def _visible(device: int) -> str:
    """Return how a child names a GPU of this process."""
    ours = os.environ.get("CUDA_VISIBLE_DEVICES")
    return str(device) if ours is None else ours.split(",")[device]

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Clusters of one worker a GPU that benchmarks compare, each driven by a process of its own.

A process a cluster, since UCX, Dask's configuration and the cap on managed memory are a process'.
So several clusters live at once, and their runs can be interleaved.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

STARTUP_SECONDS = 180


@dataclasses.dataclass(frozen=True)
class Chain:
    """How the workers of a cluster allocate and talk."""

    name: str
    keywords: dict[str, Any]
    """Of `dask_cuda.LocalCUDACluster`."""
    config: dict[str, Any]
    """Dask's configuration."""
    managed_bytes: int
    """The most managed memory of one worker."""
    on_cpu: bool = False
    """Without a GPU: Dask's own cluster, or ours on simulated devices."""


def make_chain(
    name: str,
    *,
    cuda_bytes: int,
    managed_bytes: int,
    ipc_pool_size: str = "256MiB",
    settings: dict[str, Any] | None = None,
) -> Chain:
    """Return one of the chains: ``stock-cuda[-nvlink]``, ``stock-managed`` or ``ours``.

    Without a GPU there are ``stock-cpu`` and ``ours-simulated``. Dask-CUDA's own spilling is off in
    all, so that they differ in memory and protocol alone. Pools have a fixed size, and CuPy
    allocates from them. `settings` are further ones of ``rmm-uvm``.
    """
    stock = {"protocol": "ucxx", "rmm_allocator_external_lib_list": ["cupy"]}
    if name == "stock-cuda":
        return Chain(name, {**stock, "rmm_pool_size": cuda_bytes}, {}, 0)
    if name == "stock-cuda-nvlink":
        return Chain(name, {**stock, "rmm_pool_size": cuda_bytes, "enable_nvlink": True}, {}, 0)
    if name == "stock-managed":
        # Dask-CUDA builds the chain, so the cap is its pool's maximum.
        pool = {"rmm_pool_size": managed_bytes, "rmm_maximum_pool_size": managed_bytes}
        return Chain(name, {**stock, **pool, "rmm_managed_memory": True}, {}, managed_bytes)
    if name == "stock-cpu":
        return Chain(name, {"dashboard_address": ":0"}, {}, 0, on_cpu=True)
    if name == "ours-simulated":
        keywords = {"simulated": managed_bytes, "dashboard_address": ":0"}
        return Chain(name, keywords, {}, managed_bytes, on_cpu=True)
    if name == "ours":
        keywords = {"protocol": "ucxuvm", "preload": ["rmm_uvm.dask"]}
        sizes = {
            "initial-pool-size": managed_bytes,
            "maximum-pool-size": managed_bytes,
            "ipc-pool-size": ipc_pool_size,
        }
        return Chain(name, keywords, {"rmm-uvm": sizes | (settings or {})}, managed_bytes)
    raise ValueError(f"no chain '{name}'")


class ClusterProcess:
    """A cluster and its client in a process of its own; also a context manager.

    Parameters
    ----------
    chain : Chain
        What the workers are.
    workers : int
        How many, each on a GPU of its own.
    """

    def __init__(self, chain: Chain, workers: int = 2) -> None:
        self.chain = chain
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, chain, workers))
        self._process.start()
        theirs.close()
        self._receive()  # it runs, or says why not

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(client, *arguments)``, run in the cluster's process."""
        self._pipe.send((function, arguments))
        return self._receive()

    def close(self) -> None:
        """End the cluster."""
        if self._process.is_alive():
            # It may end meanwhile, or have failed and closed its end: then there is nobody to tell.
            with contextlib.suppress(OSError):
                self._pipe.send(None)
        self._process.join(60)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()

    def __enter__(self) -> ClusterProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> Any:
        try:
            succeeded, value = self._pipe.recv()
        except EOFError:
            raise SystemExit(f"{self.chain.name}: the cluster's process ended") from None
        if not succeeded:
            raise SystemExit(f"{self.chain.name}:\n{value}")
        return value


def _serve(pipe: Connection, chain: Chain, workers: int) -> None:
    """Run what comes through the pipe with a client of the cluster, until None comes."""
    # Inherited by the workers, whose environment Dask-CUDA leaves no way to add to.
    os.environ["RMM_UVM_MANAGED_LIMIT"] = str(chain.managed_bytes or 1 << 20)
    try:
        import dask
        from distributed import Client

        with (
            dask.config.set(chain.config),
            _cluster(chain, workers) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(workers, timeout=STARTUP_SECONDS)
            pipe.send((True, None))
            while (request := pipe.recv()) is not None:
                function, arguments = request
                # On a busy machine a worker may be taken for lost, and come back.
                client.wait_for_workers(workers, timeout=STARTUP_SECONDS)
                pipe.send((True, function(client, *arguments)))
    except Exception:
        pipe.send((False, traceback.format_exc()))


def _cluster(chain: Chain, workers: int) -> Any:
    """Start the cluster of a chain."""
    if not chain.on_cpu:
        from dask_cuda import LocalCUDACluster

        return LocalCUDACluster(
            n_workers=workers, device_memory_limit=0, dashboard_address=":0", **chain.keywords
        )
    if chain.name == "stock-cpu":
        from distributed import LocalCluster

        return LocalCluster(n_workers=workers, threads_per_worker=1, **chain.keywords)
    from rmm_uvm.dask import local_cluster

    return local_cluster(workers, **chain.keywords)


def addresses(client: Any) -> list[str]:
    """Return the workers' addresses in the order of their GPUs."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return sorted(workers, key=lambda address: str(workers[address]["name"]))

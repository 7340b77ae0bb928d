# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Answers of dask-cuda's benchmark scripts, as numbers that can be compared.

The scripts throw their results away. Here frames and arrays are made by the same functions, put
through the same calls, and added up; integers, wherever sums have to be exact. Run by the process
of a cluster. `kind` is ``gpu`` or ``cpu``, as the scripts have it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

FRACTION = 0.3  # of the rows that match: the default of the script
PRIME = 1009


def merge_answer(client: Any, rows: int, kind: str) -> dict[str, int]:
    """Merge the frames of `local_cudf_merge`, of that many rows a worker."""
    from dask_cuda.benchmarks import local_cudf_merge

    chunks = len(client.scheduler_info(n_workers=-1)["workers"])
    arguments = SimpleNamespace(type=kind, no_shuffle=False)
    base, other = (
        local_cudf_merge.get_random_ddf(rows, chunks, FRACTION, which, arguments)
        for which in ("build", "other")
    )
    joined = base.merge(other, on=["key"], how="inner", broadcast=None).persist()
    mixed = joined["payload_x"] % PRIME * (joined["payload_y"] % PRIME)
    sums = {
        "key": joined["key"].sum(),
        "payload_x": joined["payload_x"].sum(),
        "payload_y": joined["payload_y"].sum(),
        "mixed": (mixed * (joined["key"] % PRIME)).sum(),
    }
    return {
        "rows": len(joined),
        "rows_expected": chunks * chunks * max(int(rows // chunks * FRACTION), 1),
        **{name: int(value.compute()) for name, value in sums.items()},
    }


def shuffle_answer(client: Any, part_bytes: int, parts: int, kind: str) -> dict[str, int]:
    """Shuffle the frame of `local_cudf_shuffle`; its numbers are others at each run."""
    from dask_cuda.benchmarks import local_cudf_shuffle

    arguments = SimpleNamespace(
        partition_size=part_bytes,
        in_parts=parts,
        partition_distribution=None,
        ignore_index=False,
        type=kind,
    )
    _, frame = local_cudf_shuffle.create_data(client, arguments)
    shuffled = frame.shuffle("data", shuffle_method="tasks", ignore_index=False).persist()
    before, after = (_bit_sums(client, each) for each in (frame, shuffled))
    return {
        "rows": after[0],
        "rows_expected": parts * (part_bytes // 8),
        "bits": after[1],
        "bits_expected": before[1],
    }


def _bit_sums(client: Any, frame: Any) -> tuple[int, int]:
    """Return how many rows a frame has, and the sum of its floats' bits, whatever their order."""
    import dask

    tasks = [dask.delayed(part_sums, pure=False)(part) for part in frame.to_delayed()]
    found = client.gather(client.compute(tasks))
    return sum(rows for rows, _ in found), sum(bits for _, bits in found) % (1 << 64)


def part_sums(frame: Any) -> tuple[int, int]:
    """Return the rows of a partition, and the sum of its floats' bits; run on workers."""
    bits = frame["data"].values.view("uint64")
    return len(bits), int(bits.sum())


def array_answer(client: Any, size: int, chunk: int, kind: str) -> dict[str, float]:
    """Add an array of `local_cupy` to its transpose; from a seed, so that it is always the same."""
    import importlib

    from dask import array

    library = importlib.import_module("cupy" if kind == "gpu" else "numpy")
    source = array.random.RandomState(7, RandomState=library.random.RandomState)
    values = source.random((size, size), chunks=chunk).persist()
    del client  # the default one, which Dask uses by itself
    return {
        "sum": float((values + values.T).sum().compute()),
        "sum_expected": 2 * float(values.sum().compute()),
    }


def memory_of_worker() -> dict[str, Any]:
    """Return which resource this worker allocates from, and our pool's peak if it is ours."""
    import rmm

    from rmm_uvm.pool.install import current_installation

    chain, resource = [], rmm.mr.get_per_device_resource(0)
    while resource is not None:
        chain.append(type(resource).__name__)
        resource = getattr(resource, "upstream_mr", None)
    installation = current_installation()
    if installation is None:
        return {"resource": chain}
    return {"resource": chain, "peak_bytes": int(installation.devices[0].managed_mr.peak_bytes)}


def memories(client: Any) -> list[dict[str, Any]]:
    """Return `memory_of_worker` of each."""
    return list(client.run(memory_of_worker).values())


def scheduler_address(client: Any) -> str:
    """Return where a script finds the cluster."""
    return str(client.scheduler.address)

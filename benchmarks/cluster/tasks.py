# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The tasks that the workers of a benchmark's cluster run.

A module of its own, so that Dask sends names and not code: a kernel is compiled once a worker.
"""

from __future__ import annotations

from typing import Any

import cupy

_FILL = cupy.ElementwiseKernel(
    "uint32 seed", "uint32 value", "value = (unsigned int)i * 2654435761u + seed", "fill_pattern"
)
_COUNT_WRONG = cupy.ElementwiseKernel(
    "uint32 value, uint32 seed",
    "raw uint32 wrong",
    "if (value != (unsigned int)i * 2654435761u + seed) atomicAdd(&wrong[0], 1u)",
    "count_wrong",
)


def make(nbytes: int, seed: int) -> cupy.ndarray:
    """Return an array with a pattern of its own, when it is written."""
    values = cupy.empty(nbytes // 4, cupy.uint32)
    _FILL(cupy.uint32(seed), values)
    cupy.cuda.Device().synchronize()
    return values


def count_wrong(values: cupy.ndarray, seed: int) -> int:
    """Return how many elements are not the pattern's: every byte is read."""
    wrong = cupy.zeros(1, cupy.uint32)
    _COUNT_WRONG(values, cupy.uint32(seed), wrong)
    return int(wrong[0])


def transfer_seconds(key: str, dask_worker: Any) -> float | None:
    """Return how long this worker took to fetch a result, connection and all; None if it did not.

    From asking for it until it is deserialised.
    """
    for entry in reversed(dask_worker.transfer_incoming_log):
        if key in entry["keys"]:
            return float(entry["stop"] - entry["start"])
    return None


def stored_results(dask_worker: Any) -> int:
    """Return how many results this worker holds."""
    return len(dask_worker.data)


def describe(dask_worker: Any) -> dict[str, Any]:
    """Return the GPU of this worker, and what allocates there."""
    import rmm

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    chain, resource = [], rmm.mr.get_current_device_resource()
    while resource is not None:
        chain.append(type(resource).__name__)
        resource = getattr(resource, "upstream_mr", None)
    return {
        "address": dask_worker.address,
        "device": properties["name"].decode(),
        "uuid": properties.get("uuid", b"").hex(),
        "resource": chain,
    }


def communication_totals() -> dict[str, float]:
    """Return what this worker's transfers have done so far, by way of ours."""
    from rmm_uvm.dask.comm.statistics import totals

    return totals().to_dict()


def peak_managed_bytes() -> int | None:
    """Return the most that was allocated at once from our pool, None where there is none."""
    from rmm_uvm.pool.install import current_installation

    installation = current_installation()
    return None if installation is None else int(installation.devices[0].managed_mr.peak_bytes)


_heard: list[str] = []


def keep_pool_warnings() -> None:
    """Keep what is said of the IPC pool from now on; also a warning and a log record there."""
    from rmm_uvm.dask.comm.notices import subscribe

    subscribe(lambda _reason, text: _heard.append(text))


def kept_pool_warnings() -> list[str]:
    """Return what was said of it."""
    return list(_heard)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of dask-cuda and distributed-ucxx that fight ours: refused, or remarked on.

`facts_of` reads them from a worker. `refusals` and `remarks` judge plain values, a line for each.
What would replace the pool, or go past it, is refused before anything is changed. What only wastes
work is remarked on.

CUDA itself says nothing of a wrong CUDA_VISIBLE_DEVICES: it shows fewer devices, or none. The rules
are those of the CUDA Programming Guide, "CUDA Environment Variables": a list of numbers or of
UUIDs, each once; what follows an entry that is no device is hidden.
"""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

from rmm_uvm.dask.settings import WorkerSettings
from rmm_uvm.support.units import format_bytes
from rmm_uvm.support.variables import setting

__all__ = [
    "WorkerFacts",
    "count_visible_devices",
    "facts_of",
    "is_simulated",
    "mig_remark",
    "refusals",
    "remarks",
    "visible_devices_problem",
]

_NUMBER = re.compile(r"\d+")
_UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z/-]+")


def visible_devices_problem(value: str | None) -> str:
    """Return why a GPU of this list cannot be used, in one line; empty if all is well.

    Parameters
    ----------
    value : str or None
        Of the environment variable; None if it is not set.

    Examples
    --------
    >>> visible_devices_problem("0,1")
    ''
    >>> visible_devices_problem("0,0")
    "CUDA_VISIBLE_DEVICES is '0,0': it names 0 twice, and CUDA then shows no device; name each once"
    """
    if value is None:
        return ""
    begin = f"CUDA_VISIBLE_DEVICES is {value!r}: "
    entries = _entries(value)
    if not any(entries) or entries[0] in ("-1", "NoDevFiles"):
        return begin + "it hides every GPU; unset it, or name devices"
    for entry in entries:
        if not _NUMBER.fullmatch(entry) and not _UUID.fullmatch(entry):
            return begin + (
                f"{entry!r} is neither a number nor a UUID (GPU-..., MIG-...), and hides itself "
                "and what follows; take it out"
            )
    numbers = [entry for entry in entries if _NUMBER.fullmatch(entry)]
    if numbers and len(numbers) < len(entries):
        return begin + "it mixes numbers and UUIDs, which CUDA does not read; use one of them"
    for entry in entries:
        if entries.count(entry) > 1:
            return begin + (
                f"it names {entry} twice, and CUDA then shows no device; name each once"
            )
    return ""


def mig_remark(value: str | None) -> str:
    """Return what a worker on a MIG instance must do without, in one line; empty for others.

    Examples
    --------
    >>> mig_remark("0,1")
    ''
    """
    if value is None or not any(entry.startswith("MIG-") for entry in _entries(value)):
        return ""
    return (
        "this worker is on a MIG instance: CUDA IPC between instances does not exist, so results "
        "travel through the host whatever the IPC pool; nothing here was tested on MIG"
    )


def count_visible_devices(value: str | None) -> int | None:
    """Return how many devices a list names, None if it is not set.

    Examples
    --------
    >>> count_visible_devices("0,1,2"), count_visible_devices(None)
    (3, None)
    """
    return None if value is None else sum(1 for entry in _entries(value) if entry)


def _entries(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",")]


# What dask-cuda's plugin RMMSetup calls its options, and what they are on the command line.
_RMM_OPTIONS = {
    "initial_pool_size": "--rmm-pool-size",
    "maximum_pool_size": "--rmm-maximum-pool-size",
    "managed_memory": "--rmm-managed-memory",
    "async_alloc": "--rmm-async",
    "release_threshold": "--rmm-release-threshold",
    "log_directory": "--rmm-log-directory",
    "rmm_track_allocations": "--rmm-track-allocations",
    "external_lib_list": "--set-rmm-allocator-for-libs",
}


@dataclasses.dataclass(frozen=True)
class WorkerFacts:
    """A worker's other settings, as far as they matter here.

    Parameters
    ----------
    rmm_options : tuple of str
        Options of dask-cuda that ask for a memory resource, as on the command line.
    device_spill_bytes : int or None
        dask-cuda's ``device_memory_limit``; None if it does not spill.
    cudf_spill : bool
        cuDF was told to spill.
    ucx_pool_size : object
        Of ``distributed-ucxx.rmm.pool-size``; None if it is not set.
    ucx_multi_buffer : bool
        Of ``distributed-ucxx.multi-buffer``.
    visible_devices : str or None
        Of CUDA_VISIBLE_DEVICES.
    simulated : bool
        The worker was told to use a simulated device.
    """

    rmm_options: tuple[str, ...] = ()
    device_spill_bytes: int | None = None
    cudf_spill: bool = False
    ucx_pool_size: object = None
    ucx_multi_buffer: bool = False
    visible_devices: str | None = None
    simulated: bool = False


def facts_of(worker: Any, settings: WorkerSettings) -> WorkerFacts:
    """Return the facts of a worker, whether it is starting or runs.

    Parameters
    ----------
    worker : distributed.Worker
    settings : WorkerSettings
        What it was told.
    """
    # Plugins given at the start wait there until the preloads have run; dask-cuda has no other
    # trace of its options in the worker's process.
    plugins = [*getattr(worker, "_pending_plugins", ()), *worker.plugins.values()]
    options: list[str] = []
    cudf_spill = False
    for plugin in plugins:
        kind = f"{type(plugin).__module__}.{type(plugin).__qualname__}"
        if kind == "dask_cuda.plugins.RMMSetup":
            options += [flag for name, flag in _RMM_OPTIONS.items() if getattr(plugin, name, None)]
        elif kind == "dask_cuda.plugins.CUDFSetup":
            cudf_spill = cudf_spill or bool(getattr(plugin, "spill", False))
    device_buffer = getattr(worker.data, "device_buffer", None)
    return WorkerFacts(
        rmm_options=tuple(options),
        # A plain dict, which has no limit `n`, is how dask-cuda's file is made without spilling.
        device_spill_bytes=getattr(device_buffer, "n", None),
        cudf_spill=cudf_spill,
        ucx_pool_size=_configured("rmm.pool-size", "distributed.rmm.pool-size"),
        ucx_multi_buffer=bool(_configured("multi-buffer", "distributed.comm.ucx.multi-buffer")),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        simulated=is_simulated(settings),
    )


def is_simulated(settings: WorkerSettings) -> bool:
    """Return whether settings and environment ask for a simulated device."""
    driver = settings.driver or setting("RMM_UVM_DRIVER")
    return driver.startswith("simulated")


def _configured(key: str, old_key: str) -> Any:
    import dask.config

    found = dask.config.get(f"distributed-ucxx.{key}", None)
    return dask.config.get(old_key, None) if found is None else found


def refusals(facts: WorkerFacts) -> list[str]:
    """Return why the pool is not to be installed, a line for each reason.

    Examples
    --------
    >>> refusals(WorkerFacts(rmm_options=("--rmm-async",)))
    ['--rmm-async of dask-cuda would replace or wrap the managed pool: leave it out; our settings \
are --initial-pool-size, --maximum-pool-size and --libraries']
    """
    found = []
    if facts.rmm_options:
        them = "them" if len(facts.rmm_options) > 1 else "it"
        found.append(
            f"{', '.join(facts.rmm_options)} of dask-cuda would replace or wrap the managed pool: "
            f"leave {them} out; our settings are --initial-pool-size, --maximum-pool-size and "
            "--libraries"
        )
    if facts.ucx_pool_size is not None:
        found.append(
            f"distributed-ucxx.rmm.pool-size is {facts.ucx_pool_size} in Dask's configuration, and "
            "would replace the managed pool: unset it, and use rmm-uvm.ipc-pool-size"
        )
    if facts.ucx_multi_buffer:
        found.append(
            "distributed-ucxx.multi-buffer is on in Dask's configuration: it receives into memory "
            "outside of RMM; unset it"
        )
    problem = visible_devices_problem(facts.visible_devices)
    if problem and not facts.simulated:
        found.append(problem)
    return found


def remarks(facts: WorkerFacts) -> list[str]:
    """Return what should be set otherwise though the pool works, a line for each.

    Examples
    --------
    >>> remarks(WorkerFacts(device_spill_bytes=1 << 30))
    ['dask-cuda spills from 1.00 GiB of results on, and the managed pool moves the same data by \
itself: set device_memory_limit=0 (--device-memory-limit 0)']
    """
    found = []
    if facts.device_spill_bytes is not None:
        found.append(
            f"dask-cuda spills from {format_bytes(facts.device_spill_bytes)} of results on, and "
            "the managed pool moves the same data by itself: set device_memory_limit=0 "
            "(--device-memory-limit 0)"
        )
    if facts.cudf_spill:
        found.append(
            "cuDF spills as well (--enable-cudf-spill), and the managed pool moves the same data "
            "by itself: leave it out"
        )
    remark = mig_remark(facts.visible_devices)
    if remark and not facts.simulated:
        found.append(remark)
    return found

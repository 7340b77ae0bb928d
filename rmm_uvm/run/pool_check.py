# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Options and variables of the pool and of watching, tried before anything runs.

A script or module finds out when its pool is installed, but not where there is no GPU: it runs
without. The pool of a command is its first Python process' own, which would only tell, and run
without, too.
"""

from __future__ import annotations

import warnings

from rmm_uvm._lib.limits import managed_limit_bytes
from rmm_uvm._lib.neighbors import check_named
from rmm_uvm.doctor.facts import DeviceFacts
from rmm_uvm.drivers import counters_are_on
from rmm_uvm.errors import AvailabilityError, CapacityWarning
from rmm_uvm.machine.device_info import oversubscribable
from rmm_uvm.machine.host_memory import host_memory
from rmm_uvm.pool.sizing import PoolRequest, plan_sizes
from rmm_uvm.residency.budget import budget_for
from rmm_uvm.run.request import RunRequest
from rmm_uvm.support.driver_names import simulated_bytes
from rmm_uvm.support.variables import setting
from rmm_uvm.watch.judging.thresholds import Thresholds

__all__ = ["check"]

_ANY_DEVICE_BYTES = 1 << 62  # of a GPU that nobody named: it is not asked for this
_ANY_COUNT = 1 << 31


def check(request: RunRequest) -> None:
    """Raise if no pool could be had with these options, as far as it shows from outside.

    No CUDA context is made: it would take device memory as long as a command runs.

    Parameters
    ----------
    request : RunRequest
        What was asked for; of torch's memory see `rmm_uvm.run.torch_memory.check`.

    Raises
    ------
    ConfigurationError
        If an option or a variable cannot be used.
    AvailabilityError
        If a device was named that does not exist.
    """
    Thresholds.from_environment()
    counters_are_on()
    if not request.pool or request.torch:
        return
    name = request.driver or setting("RMM_UVM_DRIVER") or "cuda"
    total_bytes = simulated_bytes(name, f"RMM_UVM_DRIVER={name}")
    count = _ANY_COUNT if total_bytes is None else 1
    concurrent_managed_access, integrated = True, False
    if total_bytes is None and request.device is not None:
        gpu, count = _named_gpu(request.device)
        total_bytes = gpu.total_bytes
        concurrent_managed_access, integrated = gpu.concurrent_managed_access, gpu.integrated
    device_bytes = total_bytes or _ANY_DEVICE_BYTES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)  # the program says it
        budget = budget_for(
            request.setting("device_budget"),
            request.setting("eviction"),
            device_bytes,
            request.setting("neighbors"),
            request.setting("harvest_limit"),
            oversubscribable=oversubscribable(
                concurrent_managed_access=concurrent_managed_access, integrated=integrated
            ),
        )
    if budget is not None and isinstance(budget.neighbors, tuple):
        check_named(budget.neighbors, request.device or 0, count)
    sizes = (request.setting("initial_pool_size"), request.setting("maximum_pool_size"))
    asked = PoolRequest(
        *sizes,
        budget_bytes=None if budget is None else budget.budget_bytes,
        follows=budget is not None and budget.follows,
    )
    if total_bytes is None and any(isinstance(size, float) for size in sizes):
        return  # a fraction of what is not known may be of any size
    try:
        host = host_memory()
    except AvailabilityError:
        return
    plan_sizes(
        asked,
        free_bytes=device_bytes,
        total_bytes=device_bytes,
        host=host,
        oversubscribable=concurrent_managed_access,
        integrated=integrated,
        limit_bytes=managed_limit_bytes(),
    )


def _named_gpu(device: int) -> tuple[DeviceFacts, int]:
    """Return a GPU, and how many there are."""
    from rmm_uvm.doctor.cuda_library import read_cuda

    found = read_cuda()
    for one in found.devices:
        if one.index == device:
            return one, len(found.devices)
    reason = found.reason or f"this process sees {len(found.devices)}, counted from 0"
    raise AvailabilityError(f"--device {device}: there is no such GPU: {reason}")

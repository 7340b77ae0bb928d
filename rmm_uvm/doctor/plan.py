# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The pools that `rmm_uvm.reinitialize` would install, asked for nothing special.

The sizes come from `rmm_uvm.pool.sizing`, which the installation itself uses; only the facts come
from the doctor, since opening a device for real would create a CUDA context.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm.doctor.facts import DeviceFacts
from rmm_uvm.doctor.report import PoolPlan
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.machine.device_info import oversubscribable
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.pool.sizing import PoolRequest, plan_sizes
from rmm_uvm.residency.budget import budget_for

__all__ = ["plan_pools"]


def plan_pools(devices: Sequence[DeviceFacts], memory: HostMemory) -> tuple[PoolPlan, ...]:
    """Return what would be installed on each device.

    Returns
    -------
    tuple of PoolPlan
        Without sizes, and with the reason, where nothing could be installed.
    """
    return tuple(_plan(device, memory) for device in devices)


def _request(device: DeviceFacts) -> PoolRequest:
    """Return what `rmm_uvm.reinitialize` asks for without an argument."""
    budget = budget_for(
        "auto",
        None,
        device.total_bytes,
        oversubscribable=oversubscribable(
            concurrent_managed_access=device.concurrent_managed_access,
            integrated=device.integrated,
        ),
    )
    if budget is None:
        return PoolRequest()
    return PoolRequest(budget_bytes=budget.budget_bytes, follows=budget.follows)


def _plan(device: DeviceFacts, memory: HostMemory) -> PoolPlan:
    # Needs the compiled part, without which the doctor must still be able to start.
    from rmm_uvm._lib.limits import managed_limit_bytes

    # Unknown where NVML is missing; then the figures hold for a device that nobody else uses. What
    # is free of the host's memory the host tells.
    free_bytes = device.free_bytes
    if free_bytes is None or device.integrated:
        free_bytes = device.total_bytes
    try:
        sizes = plan_sizes(
            _request(device),
            free_bytes=free_bytes,
            total_bytes=device.total_bytes,
            host=memory,
            oversubscribable=device.concurrent_managed_access,
            integrated=device.integrated,
            limit_bytes=managed_limit_bytes(),
        )
    except ConfigurationError as error:
        return PoolPlan(device.index, reason=str(error))
    return PoolPlan(
        device.index,
        {"initial_bytes": sizes.initial_bytes, "maximum_bytes": sizes.maximum_bytes},
        reason=f"initial: {sizes.initial_reason}. Maximum: {sizes.maximum_reason}.",
    )

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A process hands its device memory to another one, and takes it back.

Covers pools of `rmm_uvm.managed_pool` and `rmm_uvm.reinitialize`. Does not cover torch's own
allocator, which gives its free memory back first; see `rmm_uvm.torch.TorchMemory.sleep`.
"""

from __future__ import annotations

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.pool.slabs import trim_pools

__all__ = ["check_can_sleep", "sleep", "wake"]


def sleep(mr: rmm.mr.DeviceMemoryResource | None = None) -> int:
    """Send what pools hold to the host, so that other processes have the device until `wake`.

    Parameters
    ----------
    mr : rmm.mr.DeviceMemoryResource, optional
        A managed pool; by default all that are installed.

    Returns
    -------
    int
        Bytes that went to the host.

    Raises
    ------
    AvailabilityError
        If no pool is installed, or one has no budget: then nobody knows what lies on the device.
    ConfigurationError
        If `mr` is no managed pool of ours.

    Notes
    -----
    Free memory is given back first, as by `rmm_uvm.trim`; then all that lives leaves in bulk, also
    what is pinned. The default stream is waited for: wait for other streams before.

    Nothing is lost, and nothing is refused meanwhile. What is allocated or used comes to the
    device then, and nothing else does. A budget that shares the device wants nothing of it until
    the next use. The kernel driver keeps device memory for what left, as after any eviction: it
    hands it to whoever asks, without a copy, but counts it as taken until then.

    Thread-safe.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    >>> table = rmm.DeviceBuffer(size=8 << 20, mr=mr)
    >>> rmm_uvm.sleep(mr) >> 20, rmm_uvm.residency_statistics(mr).resident_bytes
    (8, 0)
    >>> rmm_uvm.wake(mr) >> 20
    8
    """
    slept_bytes = 0
    for pool in _sleepers(mr, "sleep"):
        trim_pools([pool])
        slept_bytes += pool.managed_mr.residency.sleep()
    return slept_bytes


def wake(mr: rmm.mr.DeviceMemoryResource | None = None) -> int:
    """Bring back what `sleep` sent away, as far as the budget goes.

    Parameters and raises as `sleep`.

    Returns
    -------
    int
        Bytes that came. What was used last comes first; the rest comes when it is used.

    Notes
    -----
    Returns once they are there. Thread-safe.
    """
    return sum(pool.managed_mr.residency.wake() for pool in _sleepers(mr, "wake"))


def check_can_sleep(residency: ManagedResidency, asked: str) -> None:
    """Raise `AvailabilityError` where nobody knows what lies on the device."""
    if not residency.keeps_budget:
        raise AvailabilityError(
            f"{asked}() needs to know what lies on device {residency.driver.info.device_id}, and "
            "there is no budget: give device_budget='auto' or a size"
        )


def _sleepers(
    mr: rmm.mr.DeviceMemoryResource | None, asked: str
) -> tuple[UvmResourceAdaptor, ...]:
    pools = tuple(managed_pools(mr))
    for pool in pools:
        check_can_sleep(pool.managed_mr.residency, asked)
    return pools

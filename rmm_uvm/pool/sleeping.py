# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A process hands its device memory to another one, and takes it back.

Covers pools of `rmm_uvm.managed_pool` and `rmm_uvm.reinitialize`. Does not cover torch's own
allocator, which gives its free memory back first; see `rmm_uvm.torch.TorchMemory.sleep`.
"""

from __future__ import annotations

from dataclasses import dataclass

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.pool.slabs import trim_pools
from rmm_uvm.support.off_switch import OFF

__all__ = ["Slept", "check_can_sleep", "sleep", "wake"]


@dataclass(frozen=True)
class Slept:
    """The result of `sleep`.

    Attributes
    ----------
    moved_bytes : int
        That went to the host.
    given_back_bytes : int
        Of memory that was free, and that the driver has back.
    reason : str
        Why not all that is free was given back; empty otherwise. What is free is dropped all the
        same.
    """

    moved_bytes: int
    given_back_bytes: int
    reason: str = ""


def sleep(mr: rmm.mr.DeviceMemoryResource | None = None) -> Slept:
    """Send what pools hold to the host, so that other processes have the device until `wake`.

    Parameters
    ----------
    mr : rmm.mr.DeviceMemoryResource, optional
        A managed pool; by default all that are installed.

    Returns
    -------
    Slept

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
    >>> rmm_uvm.sleep(mr).moved_bytes >> 20, rmm_uvm.residency_statistics(mr).resident_bytes
    (8, 0)
    >>> rmm_uvm.wake(mr) >> 20
    8
    """
    pools = _sleepers(mr, "sleep")
    if not pools:
        return Slept(0, 0, OFF)
    trimmed = trim_pools(pools)
    moved_bytes = sum(pool.managed_mr.residency.sleep() for pool in pools)
    return Slept(moved_bytes, trimmed.given_back_bytes, trimmed.reason)


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


def _sleepers(mr: rmm.mr.DeviceMemoryResource | None, asked: str) -> tuple[UvmResourceAdaptor, ...]:
    pools = tuple(managed_pools(mr))
    for pool in pools:
        check_can_sleep(pool.managed_mr.residency, asked)
    return pools

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The objects that are installed on one device."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.ipc.pool import IpcPool
from rmm_uvm.machine.device_info import Availability, DeviceInfo
from rmm_uvm.pool.sizing import PoolSizes
from rmm_uvm.residency.budget import Budget

__all__ = ["DeviceInstallation", "resources_down"]


@dataclasses.dataclass(frozen=True)
class DeviceInstallation:
    """The pools of one device.

    Parameters
    ----------
    info : DeviceInfo
        The device.
    sizes : PoolSizes
        Of its pools.
    managed_mr : rmm_uvm.mr.UvmResourceAdaptor
        The managed pool's outer adaptor.
    ipc_mr : rmm_uvm.ipc.IpcPool or None
        The IPC pool.
    installed_mr : rmm.mr.DeviceMemoryResource
        What RMM was given: `managed_mr`, or a logging adaptor over it.
    previous_mr : rmm.mr.DeviceMemoryResource
        What RMM had before.
    counters : Availability
        Whether migrated bytes are counted.
    old_live_bytes, old_kept_bytes : int
        What still lived in the previous pool of ours, and what that pool keeps for it.
    """

    info: DeviceInfo
    sizes: PoolSizes
    managed_mr: UvmResourceAdaptor
    ipc_mr: IpcPool | None
    installed_mr: rmm.mr.DeviceMemoryResource
    previous_mr: rmm.mr.DeviceMemoryResource
    counters: Availability
    old_live_bytes: int = 0
    old_kept_bytes: int = 0

    @property
    def budget(self) -> Budget | None:
        """The budget of its managed memory now; None where the kernel driver evicts."""
        return self.managed_mr.budget

    @property
    def current(self) -> bool:
        """RMM still uses this pool for the device, itself or through adaptors over it."""
        return any(each is self.managed_mr for each in resources_down(self._now))

    @property
    def adaptors(self) -> tuple[str, ...]:
        """Names of adaptors that others put over this pool, outermost first; see `current`."""
        if not self.current:
            return ()
        over = itertools.takewhile(
            lambda each: each is not self.managed_mr, resources_down(self._now)
        )
        return tuple(type(each).__name__ for each in over if each is not self.installed_mr)

    @property
    def _now(self) -> rmm.mr.DeviceMemoryResource:
        return rmm.mr.get_per_device_resource(self.info.device_id)


def resources_down(mr: object) -> Iterator[object]:
    """Yield a resource and what it allocates from, down to the last that can be asked."""
    while mr is not None:
        yield mr
        mr = getattr(mr, "upstream_mr", None)

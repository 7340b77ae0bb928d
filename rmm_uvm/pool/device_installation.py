# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is installed on one device."""

from __future__ import annotations

import dataclasses

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.ipc.pool import IpcPool
from rmm_uvm.machine.device_info import Availability, DeviceInfo
from rmm_uvm.pool.sizing import PoolSizes
from rmm_uvm.residency.budget import Budget

__all__ = ["DeviceInstallation"]


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
    kept_bytes : int
        Bytes that still lived in the previous pool of ours.
    """

    info: DeviceInfo
    sizes: PoolSizes
    managed_mr: UvmResourceAdaptor
    ipc_mr: IpcPool | None
    installed_mr: rmm.mr.DeviceMemoryResource
    previous_mr: rmm.mr.DeviceMemoryResource
    counters: Availability
    kept_bytes: int = 0

    @property
    def budget(self) -> Budget | None:
        """The budget of its managed memory now; None where the kernel driver evicts."""
        return self.managed_mr.budget

    @property
    def current(self) -> bool:
        """RMM still uses this pool for the device."""
        return rmm.mr.get_per_device_resource(self.info.device_id) is self.installed_mr

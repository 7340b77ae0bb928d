# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The description of a device by its driver: plain values, made by the compiled layer.

Covers availability and fixed device facts. Does not cover counters that change; see
`rmm_uvm.drivers`.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Availability:
    """Whether a feature can be used here and, if not, why.

    Parameters
    ----------
    available : bool
        The feature works.
    reason : str
        Why not, one sentence; empty when available.
    """

    available: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.available


def oversubscribable(*, concurrent_managed_access: bool, integrated: bool) -> Availability:
    """Return whether managed memory may exceed a device, and so needs a budget; if not, why.

    Parameters
    ----------
    concurrent_managed_access, integrated : bool
        As in `DeviceInfo`.

    Notes
    -----
    What an integrated device has is the host's memory: a migration to it is one to the host
    (``uvm_migrate.c`` of NVIDIA's open kernel modules 595.45.04).

    Examples
    --------
    >>> print(oversubscribable(concurrent_managed_access=True, integrated=True).reason)
    its memory is the host's, so nothing can leave it
    """
    if integrated:
        return Availability(
            available=False, reason="its memory is the host's, so nothing can leave it"
        )
    if not concurrent_managed_access:
        return Availability(available=False, reason="the device has no concurrent managed access")
    return Availability(available=True)


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """Facts about a device that do not change while a process runs.

    Parameters
    ----------
    device_id : int
        CUDA ordinal.
    name : str
        As the driver names it.
    uuid : str
        GPU UUID in the notation of nvidia-smi; all zeros on a simulated device.
    total_bytes : int
        Device memory, bytes.
    driver_version : int
        CUDA version of the driver, 13000 for 13.0.
    concurrent_managed_access : Availability
        Without it pages can be neither prefetched nor oversubscribed.
    discard : Availability
        The discard calls of CUDA 13.
    direct_migration : Availability
        The UVM kernel driver's own migration, which holds up no kernel launch; tested by moving
        2 MiB.
    host_pages : Availability
        Whether it can be told which managed pages lie on the host, so that what faulted in
        unannounced is found; tested by moving 2 MiB.
    pageable_memory_access : bool
        HMM or ATS: the GPU can use memory from the system's malloc.
    host_page_tables : bool
        ATS: it does so through the page tables of the host.
    integrated : bool
        Its memory is the host's, as in DGX Spark and Jetson: nothing ever moves, and what the host
        has available counts once.
    numa_node : int or None
        The NUMA node of the host that its memory is, as with Grace; None if it is none.
    simulated : bool
        A model, not a GPU.
    """

    device_id: int
    name: str
    uuid: str
    total_bytes: int
    driver_version: int
    concurrent_managed_access: Availability
    discard: Availability
    direct_migration: Availability
    host_pages: Availability
    pageable_memory_access: bool
    host_page_tables: bool
    integrated: bool
    numa_node: int | None
    simulated: bool

    @property
    def oversubscribable(self) -> Availability:
        """Whether managed memory may exceed the device; if not, why."""
        return oversubscribable(
            concurrent_managed_access=bool(self.concurrent_managed_access),
            integrated=self.integrated,
        )

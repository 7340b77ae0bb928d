# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Warnings of `rmm_uvm.pool.install`, at the line of the user's program that called it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import rmm

from rmm_uvm._lib.mr import unobserved
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import CapacityWarning, ReplacedResourceWarning
from rmm_uvm.pool.budget_warnings import warn_of_budget
from rmm_uvm.pool.device_installation import DeviceInstallation
from rmm_uvm.pool.installation import Installation
from rmm_uvm.support.units import format_bytes
from rmm_uvm.support.user_line import warn_user

__all__ = ["Farewell", "leases_of", "warn_about", "warn_of_adaptors", "warn_replaced"]


def warn_about(installation: Installation) -> None:
    """Warn, at the line that called `reinitialize`, of what the devices cannot do."""
    for device in installation.devices:
        info = device.info
        if not info.concurrent_managed_access and not info.integrated:
            warn_user(
                f"device {info.device_id} cannot be oversubscribed, its capacity is the card's "
                f"{format_bytes(info.total_bytes)}: {info.concurrent_managed_access.reason}",
                CapacityWarning,
            )
        if device.sizes.warning:
            warn_user(device.sizes.warning, CapacityWarning)


def warn_replaced(device_id: int, what: str, then: str) -> None:
    """Warn that our pool and a resource of somebody else take each other's place.

    Parameters
    ----------
    device_id : int
        Whose resource it is.
    what, then : str
        What happens, before and after the resource's name.
    """
    other = type(unobserved(rmm.mr.get_per_device_resource(device_id))).__name__
    warn_user(
        f"rmm_uvm's pool on device {device_id} {what} {other}, {then}",
        ReplacedResourceWarning,
    )


def warn_of_adaptors(device_id: int, names: Sequence[str]) -> None:
    """Warn that adaptors of others over our pool go with it, if there are any.

    Parameters
    ----------
    device_id : int
        Whose pool it is.
    names : sequence of str
        Of the adaptors.
    """
    if names:
        warn_user(
            f"{', '.join(names)} over rmm_uvm's pool on device {device_id} goes with it: put it "
            "over the resource that is there now, such as by rmm.statistics.enable_statistics()",
            ReplacedResourceWarning,
        )


@dataclasses.dataclass
class Farewell:
    """Tells of pools that went. Keeps none of them alive.

    Parameters
    ----------
    leased : list of str
        Which IPC pools stay, and why.
    adaptors : dict of int to tuple of str
        By device, the adaptors that others had put over the pool.
    residencies : list of ManagedResidency
        Of the pools, which own no memory.
    replaced : list of int
        Devices on which somebody else's resource stays.
    refused : Exception or None
        A warning of a monitor that Python's filter made an error of.
    """

    leased: list[str]
    adaptors: dict[int, tuple[str, ...]]
    residencies: list[ManagedResidency]
    replaced: list[int] = dataclasses.field(default_factory=list)
    refused: Exception | None = None

    @classmethod
    def to(cls, devices: Sequence[DeviceInstallation]) -> Farewell:
        """Return that to pools which are still RMM's, and are about to go."""
        return cls(
            leases_of(devices),
            {each.info.device_id: each.adaptors for each in devices},
            [each.managed_mr.managed_mr.residency for each in devices],
        )

    def warn(self) -> None:
        """Say it; warnings may be errors."""
        for device_id in self.replaced:
            warn_replaced(device_id, "was replaced meanwhile by", "which stays")
        for device_id, names in self.adaptors.items():
            warn_of_adaptors(device_id, names)
        for text in self.leased:
            warn_user(text, CapacityWarning)
        for residency in self.residencies:  # what no monitor could say
            warn_of_budget(residency)
        if self.refused is not None:
            raise self.refused


def leases_of(devices: Sequence[DeviceInstallation]) -> list[str]:
    """Return which IPC pools stay when they are dropped, and why."""
    found = []
    for device in devices:
        leases = () if device.ipc_mr is None else device.ipc_mr.leases()
        if leases:
            buffers = "a buffer" if len(leases) == 1 else f"{len(leases)} buffers"
            found.append(
                f"the IPC pool of device {device.info.device_id} keeps its "
                f"{format_bytes(device.sizes.ipc_bytes)} until other processes let go of {buffers}"
            )
    return found

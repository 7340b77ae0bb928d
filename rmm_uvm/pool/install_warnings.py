# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `rmm_uvm.pool.install` warns of: at the line of the user's program that called it."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence

import rmm

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import CapacityWarning, ReplacedResourceWarning
from rmm_uvm.pool.budget_warnings import warn_of_budget
from rmm_uvm.pool.device_installation import DeviceInstallation
from rmm_uvm.pool.installation import Installation
from rmm_uvm.support.units import format_bytes

__all__ = ["Farewell", "leases_of", "warn_about", "warn_of_adaptors", "warn_replaced"]


def warn_about(installation: Installation) -> None:
    """Warn, at the line that called `reinitialize`, of what the devices cannot do."""
    for device in installation.devices:
        info = device.info
        if not info.concurrent_managed_access and not info.integrated:
            warnings.warn(
                f"device {info.device_id} cannot be oversubscribed, its capacity is the card's "
                f"{format_bytes(info.total_bytes)}: {info.concurrent_managed_access.reason}",
                CapacityWarning,
                stacklevel=4,
            )
        if device.sizes.warning:
            warnings.warn(device.sizes.warning, CapacityWarning, stacklevel=4)


def warn_replaced(device_id: int, what: str, then: str, stacklevel: int = 5) -> None:
    """Warn that our pool and a resource of somebody else take each other's place.

    Parameters
    ----------
    device_id : int
        Whose resource it is.
    what, then : str
        What happens, before and after the resource's name.
    stacklevel : int
        As in `warnings.warn`, from here.
    """
    other = type(rmm.mr.get_per_device_resource(device_id)).__name__
    warnings.warn(
        f"rmm_uvm's pool on device {device_id} {what} {other}, {then}",
        ReplacedResourceWarning,
        stacklevel=stacklevel,
    )


def warn_of_adaptors(device_id: int, names: Sequence[str], stacklevel: int) -> None:
    """Warn that adaptors of others over our pool go with it, if there are any.

    Parameters
    ----------
    device_id : int
        Whose pool it is.
    names : sequence of str
        Of the adaptors.
    stacklevel : int
        As in `warnings.warn`, from here.
    """
    if names:
        warnings.warn(
            f"{', '.join(names)} over rmm_uvm's pool on device {device_id} goes with it: put it "
            "over the resource that is there now, such as by rmm.statistics.enable_statistics()",
            ReplacedResourceWarning,
            stacklevel=stacklevel,
        )


@dataclasses.dataclass
class Farewell:
    """What there is to say of pools that went. Keeps none of them alive.

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

    def warn(self, stacklevel: int) -> None:
        """Say it; warnings may be errors.

        Parameters
        ----------
        stacklevel : int
            As in `warnings.warn`, from what is called here.
        """
        for device_id in self.replaced:
            warn_replaced(
                device_id, "was replaced meanwhile by", "which stays", stacklevel=stacklevel
            )
        for device_id, names in self.adaptors.items():
            warn_of_adaptors(device_id, names, stacklevel=stacklevel)
        for text in self.leased:
            warnings.warn(text, CapacityWarning, stacklevel=stacklevel - 1)
        for residency in self.residencies:  # what no monitor could say
            warn_of_budget(residency, stacklevel=stacklevel)
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

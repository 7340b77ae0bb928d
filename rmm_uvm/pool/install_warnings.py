# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `rmm_uvm.pool.install` warns of: at the line of the user's program that called it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import rmm

from rmm_uvm.errors import CapacityWarning, ReplacedResourceWarning
from rmm_uvm.pool.installation import Installation
from rmm_uvm.support.units import format_bytes

__all__ = ["leases_of", "warn_about", "warn_of_adaptors", "warn_of_others", "warn_replaced"]


def warn_about(installation: Installation) -> None:
    """Warn, at the line that called `reinitialize`, of what the devices cannot do."""
    for device in installation.devices:
        info = device.info
        if not info.concurrent_managed_access:
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


def warn_of_others(gone: Sequence[int], meant: Sequence[int], stacklevel: int) -> None:
    """Warn that pools of an earlier call went on devices that this one is not for, if any did.

    Parameters
    ----------
    gone, meant : sequence of int
        Ordinals of these devices, and of those that the call is for.
    stacklevel : int
        As in `warnings.warn`, from here.
    """
    if gone:
        ids = ", ".join(map(str, gone))
        warnings.warn(
            f"rmm_uvm's pool on device {ids} goes: the last call decides; give it all devices, "
            f"devices={sorted([*gone, *meant])}",
            ReplacedResourceWarning,
            stacklevel=stacklevel,
        )


def leases_of(installation: Installation) -> list[str]:
    """Return which IPC pools stay when they are dropped, and why."""
    found = []
    for device in installation.devices:
        leases = () if device.ipc_mr is None else device.ipc_mr.leases()
        if leases:
            buffers = "a buffer" if len(leases) == 1 else f"{len(leases)} buffers"
            found.append(
                f"the IPC pool of device {device.info.device_id} keeps its "
                f"{format_bytes(device.sizes.ipc_bytes)} until other processes let go of {buffers}"
            )
    return found

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which of the installed pools a worker means: all parts of a worker ask here.

Importing this needs neither RMM nor a GPU.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmm_uvm.pool.device_installation import DeviceInstallation
    from rmm_uvm.pool.installation import Installation

__all__ = ["WORKERS_DEVICE", "installed_pools", "workers_pool"]

WORKERS_DEVICE = 0  # the first that a worker sees


def workers_pool() -> tuple[Installation, DeviceInstallation] | None:
    """Return the installation that a worker means, and the device in it that is meant.

    That of the worker's device. Where nothing is installed on it, the last call that has a device,
    and its first device; None where nothing is installed at all.

    Notes
    -----
    Thread-safe: another thread may restore meanwhile.
    """
    return next(iter(installed_pools()), None)


def installed_pools() -> list[tuple[Installation, DeviceInstallation]]:
    """Return all that is installed: what `workers_pool` returns, then the others by device."""
    # Not imported here: where nobody did, nothing is installed, and RMM may be missing.
    install = sys.modules.get("rmm_uvm.pool.install")
    handles = () if install is None else install.installations()
    found = [(each, device) for each in handles for device in each.devices]
    last = next((pair for pair in found if pair[0] is found[-1][0]), None)
    return sorted(
        found,
        key=lambda pair: (_device(pair) != WORKERS_DEVICE, pair is not last, _device(pair)),
    )


def _device(pair: tuple[Installation, DeviceInstallation]) -> int:
    return pair[1].info.device_id

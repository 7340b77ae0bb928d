# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated device that is a card of a given size in a given machine."""

from __future__ import annotations

import dataclasses
from typing import Any

from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.planner.capacities import whole_blocks

__all__ = ["simulated_card"]


def simulated_card(
    machine: Any, driver: Any, device_bytes: int, host_bytes: int | None
) -> SimulatedDevice:
    """Return a fresh device.

    Parameters
    ----------
    machine : Machine
        Its rates and times.
    driver : DriverSettings
        Parameters of its kernel driver.
    device_bytes : int
        Its memory; rounded down to blocks of 2 MiB.
    host_bytes : int or None
        Host memory for its pages; None for as much as is wanted.
    """
    return SimulatedDevice(
        whole_blocks(device_bytes),
        host_bytes=host_bytes,
        machine=machine.constants(),
        driver=dataclasses.asdict(driver),
    )

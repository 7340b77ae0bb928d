# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated device that is a card of a given size in a given machine."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.support.units import whole_blocks

__all__ = ["simulated_card"]


# A recording has the kernels' own time: beside it only what the driver does takes any.
_KERNELS_TAKE_NO_TIME = {"memory_bytes_per_ns": math.inf, "launch_ns": 0.0}


def simulated_card(
    machine: Any,
    driver: Any,
    device_bytes: int,
    host_bytes: int | None,
    *,
    kernels_take_time: bool = True,
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
    kernels_take_time : bool
        Touches of resident pages take the time that the machine's memory does.
    """
    return SimulatedDevice(
        whole_blocks(device_bytes),
        host_bytes=host_bytes,
        machine={**machine.constants(), **({} if kernels_take_time else _KERNELS_TAKE_NO_TIME)},
        driver=dataclasses.asdict(driver),
    )

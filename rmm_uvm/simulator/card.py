# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated device that is a card of a given size in a given machine."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rmm_uvm._lib.sim import NodeModel
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
    beside: bool = False,
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
    beside : bool
        What a budget moves goes beside the program, each direction for itself, and kernels wait
        for what they use of it: the card is the only one of a node.
    """
    constants = {**machine.constants(), **({} if kernels_take_time else _KERNELS_TAKE_NO_TIME)}
    settings = dataclasses.asdict(driver)
    if not beside:
        return SimulatedDevice(
            whole_blocks(device_bytes),
            host_bytes=host_bytes,
            machine=constants,
            driver=settings,
            third_tier=machine.behind_host(),
        )
    node = NodeModel(
        whole_blocks(device_bytes),
        gpus=1,
        topology="pcie",
        links=[0],
        host_bytes=host_bytes,
        backing=False,
        discard=True,
        counters=True,
        direct_migration=False,
        places_at_once=True,
        machine=constants,
        driver=settings,
        third_tier=machine.behind_host(),
    )
    device: SimulatedDevice = node.devices[0]
    return device

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Attribution: which events source a driver has, and how its sums become rows.

Covers opening the source and naming its columns. Does not cover when it is on; see
`rmm_uvm.watch.monitor`.

References
----------
The cost was measured on an NVIDIA H200 with driver 580 and CUDA 13.0, on a kernel that does nothing
but fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm._lib.events import MigrationEvents, cupti_events, simulated_events
from rmm_uvm.drivers import SimulatedDevice, UvmDriver
from rmm_uvm.machine.cupti_library import find_cupti
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.recorded import CAUSES

if TYPE_CHECKING:
    from rmm_uvm._lib.events import CauseTotals

__all__ = ["COLUMNS", "COST_NOTE", "cause_row", "cost_note", "open_events"]

COST_NOTE = (
    "attribution is on: code that faults takes two to four times as long meanwhile (CUPTI; 2.3 to "
    "3.6 measured on an H200)"
)
"""What attribution costs on a GPU, for everything that prints it."""

_WITHOUT_CAUSE = (
    "device_to_device_bytes",
    "cpu_faults",
    "gpu_fault_groups",
    "thrashing_bytes",
    "throttling_ns",
    "remote_map_bytes",
    "dropped_records",
    "forgotten_bytes",
)

COLUMNS = (
    "time_seconds",
    "device_id",
    *(f"host_to_device_{cause}_bytes" for cause in CAUSES),
    *(f"device_to_host_{cause}_bytes" for cause in CAUSES),
    *_WITHOUT_CAUSE,
)
"""Columns of `rmm_uvm.recording.recorded.Recording.causes`; the rows come from `cause_row`."""


def open_events(driver: UvmDriver) -> tuple[MigrationEvents | None, Availability]:
    """Open the source that tells why pages of a device move; it is off until started.

    Parameters
    ----------
    driver : UvmDriver
        Of the device. On a GPU libcupti is looked for, and loaded.

    Returns
    -------
    tuple of (MigrationEvents or None, Availability)
        None, and why, where there is none. That another profiler holds CUPTI is known only when it
        is started.

    Notes
    -----
    Thread-safe. Sources of one process share CUPTI, whatever their devices: any number may be on.

    Examples
    --------
    >>> import rmm_uvm
    >>> events, found = open_events(rmm_uvm.simulated_device("64MiB"))
    >>> bool(found), bool(events.start())
    (True, True)
    >>> events.stop()
    """
    if isinstance(driver, SimulatedDevice):
        return simulated_events(driver), Availability(available=True)
    access = driver.info.concurrent_managed_access
    if not access:
        return None, Availability(available=False, reason=f"nothing migrates: {access.reason}")
    path, found = find_cupti()
    if path is None:
        return None, found
    return cupti_events([driver.info.device_id], [path])


def cost_note(driver: UvmDriver) -> str:
    """Return what attribution costs with this driver; empty on a simulated device.

    Examples
    --------
    >>> import rmm_uvm
    >>> cost_note(rmm_uvm.simulated_device("64MiB"))
    ''
    """
    return "" if driver.info.simulated else COST_NOTE


def cause_row(time_seconds: float, device_id: int, totals: CauseTotals) -> list[float]:
    """Return the sums of one device at one time as a row under `COLUMNS`.

    Parameters
    ----------
    time_seconds : float
        Since the monitor began.
    device_id : int
        CUDA ordinal.
    totals : dict
        As from `MigrationEvents.read`.

    Examples
    --------
    >>> import rmm_uvm
    >>> events, _ = open_events(rmm_uvm.simulated_device("64MiB"))
    >>> row = cause_row(1.5, 0, events.read())
    >>> dict(zip(COLUMNS, row))["device_to_host_eviction_bytes"]
    0
    """
    return [
        time_seconds,
        device_id,
        *(totals["host_to_device_bytes"][cause] for cause in CAUSES),
        *(totals["device_to_host_bytes"][cause] for cause in CAUSES),
        totals["device_to_device_bytes"],
        totals["cpu_faults"],
        totals["gpu_fault_groups"],
        totals["thrashing_bytes"],
        totals["throttling_ns"],
        totals["remote_map_bytes"],
        totals["dropped_records"],
        totals["forgotten_bytes"],
    ]

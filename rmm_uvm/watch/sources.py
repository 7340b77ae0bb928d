# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What can be watched of a device, and why the rest cannot.

Covers finding devices and opening their drivers. Does not cover reading them; the compiled sampler
does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.device_info import Availability
from rmm_uvm.drivers import choose_driver
from rmm_uvm.errors import UvmError
from rmm_uvm.watch import footprint
from rmm_uvm.watch.recording import DeviceFacts

__all__ = ["WatchedDevice", "devices_to_watch", "of_all", "of_any", "open_device"]

AVAILABLE = Availability(available=True)


@dataclasses.dataclass(frozen=True)
class WatchedDevice:
    """One device and how it is reached.

    Parameters
    ----------
    facts : DeviceFacts
        What does not change.
    driver : UvmDriver or None
        None where there is no GPU, or no driver.
    reason : str
        Why there is no driver; one line.
    """

    facts: DeviceFacts
    driver: UvmDriver | None
    reason: str = ""

    @property
    def counters(self) -> Availability:
        """Whether bytes moved are counted."""
        if self.driver is None:
            return Availability(available=False, reason=self.reason)
        return self.driver.counters_available()

    @property
    def memory(self) -> Availability:
        """Whether device memory in use is known."""
        if self.driver is None:
            return Availability(available=False, reason=self.reason)
        return AVAILABLE


def devices_to_watch(asked: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the ordinals that were asked for; else those with a chain of ours, else device 0."""
    if asked is not None:
        return asked
    ours = tuple(i for i in footprint.known_devices() if footprint.driver_of(i) is not None)
    return ours or (0,)


def open_device(device_id: int, driver: UvmDriver | str | None = None) -> WatchedDevice:
    """Return a device with the driver of its chain, or one that is opened for it.

    Parameters
    ----------
    device_id : int
        CUDA ordinal.
    driver : UvmDriver, str or None
        As in `rmm_uvm.drivers.choose_driver`. None: the one of the installed chain, if any.

    Notes
    -----
    Never fails: a device that cannot be reached is one without a driver, with the reason.
    """
    found = footprint.driver_of(device_id) if driver is None else None
    reason = ""
    if found is None:
        try:
            found = choose_driver(device_id, driver)
        except (UvmError, MemoryError) as error:
            reason = str(error)
    names = footprint.chain_names(device_id)
    if found is None:
        facts = DeviceFacts(device_id, "unknown", "", 0, 0, chain=names)
        return WatchedDevice(facts, None, reason)
    info = found.info
    facts = DeviceFacts(
        device_id=device_id,
        name=info.name,
        uuid=info.uuid,
        total_bytes=info.total_bytes,
        capacity_bytes=_capacity_bytes(device_id, found),
        simulated=info.simulated,
        chain=names,
    )
    return WatchedDevice(facts, found)


def _capacity_bytes(device_id: int, driver: UvmDriver) -> int:
    """Return the device memory that managed pages can use: what is free, and what they have.

    Where it is not known what they have, as much as the device has: too high rather than a false
    alarm.
    """
    free_bytes, total_bytes = driver.memory()
    own = footprint.own_adaptor(device_id)
    foreign = footprint.foreign_levels(device_id) if own is None else None
    if own is not None:
        managed_bytes = own.managed_mr.slab_bytes
    elif foreign is not None and foreign.managed_bytes:
        managed_bytes = foreign.managed_bytes
    else:
        return total_bytes
    return min(free_bytes + min(managed_bytes, total_bytes - free_bytes), total_bytes)


def of_all(answers: Iterable[Availability]) -> Availability:
    """Return the first answer that is no, else yes."""
    return next((answer for answer in answers if not answer), AVAILABLE)


def of_any(answers: Iterable[Availability]) -> Availability:
    """Return yes if any answer is yes, else the first no."""
    found = list(answers)
    return AVAILABLE if any(found) else found[0]

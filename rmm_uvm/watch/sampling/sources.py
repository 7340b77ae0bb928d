# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tells what can be watched of a device, and why the rest cannot.

Covers finding devices and opening their drivers. Does not cover reading them; the compiled sampler
does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.monitor import Sampler, Slot
from rmm_uvm.drivers import choose_driver
from rmm_uvm.errors import UvmError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.support.off_switch import OFF
from rmm_uvm.watch.sampling import chain

__all__ = [
    "AVAILABLE",
    "MOVED",
    "NOT_ASKED_FOR",
    "OFF_SOURCE",
    "OTHER_THAN_NAMED",
    "SWITCHED_OFF",
    "WatchedDevice",
    "devices_to_watch",
    "fixed_sources",
    "of_all",
    "of_any",
    "off_devices",
    "open_devices",
    "renewed",
    "slot_of",
]

AVAILABLE = Availability(available=True)
# Reasons that begin so are no fault: see `rmm_uvm.watch.judging.policy.worth_telling`.
NOT_ASKED_FOR = Availability(available=False, reason="not asked for")
SWITCHED_OFF = Availability(available=False, reason="switched off")
OFF_SOURCE = Availability(available=False, reason=OFF)
MOVED = Availability(
    available=False,
    reason="the pool is on another simulated device than the one watched: start a new monitor",
)
OTHER_THAN_NAMED = Availability(
    available=False, reason="not asked for: the pool is on another simulated device than named"
)


@dataclasses.dataclass(frozen=True)
class WatchedDevice:
    """One device and how it is reached.

    Parameters
    ----------
    facts : RecordedDevice
        What does not change.
    driver : UvmDriver or None
        None where there is no GPU, or no driver.
    reason : str
        Why there is no driver; one line.
    nvml : Availability
        Whether NVML knows the device.
    memory_reader : object or None
        NVML's, that tells device memory; the driver does where it is None.
    """

    facts: RecordedDevice
    driver: UvmDriver | None
    reason: str = ""
    nvml: Availability = SWITCHED_OFF
    memory_reader: Any = None

    @property
    def counters(self) -> Availability:
        """Whether bytes moved are counted."""
        if self.driver is None:
            return Availability(available=False, reason=self.reason)
        return self.driver.counters_available()

    @property
    def memory(self) -> Availability:
        """Whether device memory in use is known."""
        if self.driver is None and self.memory_reader is None:
            return Availability(available=False, reason=self.reason)
        return AVAILABLE


def open_devices(
    asked: tuple[int, ...] | None, driver: UvmDriver | str | None = None
) -> list[WatchedDevice]:
    """Return the devices to watch, each with what can be opened of it.

    Parameters
    ----------
    asked : tuple of int or None
        CUDA ordinals; None: those with a chain of ours, else device 0.
    driver : UvmDriver, str or None
        As in `rmm_uvm.drivers.choose_driver`. None: the one of the installed chain, if any.
    """
    return [open_device(device_id, driver) for device_id in devices_to_watch(asked)]


def off_devices(asked: tuple[int, ...] | None) -> list[WatchedDevice]:
    """Return the devices of a monitor that is switched off: nothing of them is opened."""
    return [
        WatchedDevice(RecordedDevice(device_id, "unknown", "", 0, 0), None, OFF, OFF_SOURCE)
        for device_id in devices_to_watch(asked)
    ]


def devices_to_watch(asked: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the ordinals that were asked for; else those with a chain of ours, else device 0."""
    if asked is not None:
        return asked
    ours = tuple(i for i in chain.known_devices() if chain.driver_of(i) is not None)
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
    found = chain.driver_of(device_id) if driver is None else None
    reason = ""
    if found is None:
        try:
            found = choose_driver(device_id, driver)
        except (UvmError, MemoryError) as error:
            reason = str(error)
    names = chain.chain_names(device_id)
    if found is None:
        return _without_driver(device_id, names, reason)
    info = found.info
    facts = RecordedDevice(
        device_id=device_id,
        name=info.name,
        uuid=info.uuid,
        total_bytes=info.total_bytes,
        capacity_bytes=_capacity_bytes(device_id, found),
        simulated=info.simulated,
        chain=names,
    )
    if info.simulated:
        return WatchedDevice(facts, found, nvml=_no("not asked for: the device is simulated"))
    nvml, reader = _nvml_reader(info.uuid)
    return WatchedDevice(facts, found, nvml=nvml, memory_reader=reader)


def _without_driver(device_id: int, names: tuple[str, ...], reason: str) -> WatchedDevice:
    """Return a device of which NVML knows everything that can be known, if it does."""
    library = _nvml()
    listed: tuple[tuple[str, str], ...] = library.devices() if library.available else ()
    # Without CUDA nobody tells how its ordinals map to NVML's; a single device is itself.
    if len(listed) != 1 or device_id != 0:
        facts = RecordedDevice(device_id, "unknown", "", 0, 0, chain=names)
        nvml = _no("no such device") if library.available else library.available
        return WatchedDevice(facts, None, reason, nvml)
    uuid, name = listed[0]
    nvml, reader = _nvml_reader(uuid)
    total_bytes = library.memory(uuid)[2] if nvml else 0
    facts = RecordedDevice(device_id, name, uuid, total_bytes, total_bytes, chain=names)
    return WatchedDevice(facts, None, reason, nvml, reader)


def _nvml() -> Any:
    from rmm_uvm._lib.cuda import Nvml

    return Nvml()


def _nvml_reader(uuid: str) -> tuple[Availability, Any]:
    """Return whether NVML knows a device, and what reads its memory."""
    library = _nvml()
    if not library.available:
        return library.available, None
    try:
        library.memory(uuid)  # it may know the device and not be allowed to look
        return AVAILABLE, library.memory_reader(uuid)
    except UvmError as error:
        return _no(str(error)), None


def _no(reason: str) -> Availability:
    return Availability(available=False, reason=reason)


def _capacity_bytes(device_id: int, driver: UvmDriver) -> int:
    """Return the device memory that managed pages can use: what is free, and what they have.

    Where it is not known what they have, and where nothing can leave, as much as the device has:
    too high rather than a false alarm.
    """
    free_bytes, total_bytes = driver.memory()
    if driver.info.integrated:
        return total_bytes
    own = chain.own_adaptor(device_id)
    foreign = chain.foreign_levels(device_id) if own is None else None
    if own is not None:
        managed_bytes = own.managed_mr.slab_bytes
        residency = own.managed_mr.residency
        kept = residency.residency()
        if kept is not None and residency.budget is not None and residency.budget.follows:
            others_bytes = (kept["unmanaged_bytes"] or 0) + kept["hidden_bytes"]
            return max(total_bytes - others_bytes, 0)
    elif foreign is not None and foreign.managed_bytes:
        managed_bytes = foreign.managed_bytes
    else:
        return total_bytes
    used_bytes = total_bytes - free_bytes - _ipc_bytes(device_id)
    return free_bytes + max(min(managed_bytes, used_bytes), 0)


def _ipc_bytes(device_id: int) -> int:
    """Return the device memory of the installed IPC pool, which managed pages cannot have."""
    # By name, since it lies above: where nobody has imported it, nothing is installed.
    install = sys.modules.get("rmm_uvm.pool.install")
    devices = () if install is None else install.installed_devices()
    return sum(each.sizes.ipc_bytes for each in devices if each.info.device_id == device_id)


def of_all(answers: Iterable[Availability]) -> Availability:
    """Return the first answer that is no, else yes."""
    return next((answer for answer in answers if not answer), AVAILABLE)


def of_any(answers: Iterable[Availability]) -> Availability:
    """Return yes if any answer is yes, else the first no."""
    found = list(answers)
    return AVAILABLE if any(found) else found[0]


def slot_of(watched: WatchedDevice, *, faults: bool) -> Slot:
    """Return what the sampler needs to watch a device."""
    return Slot(
        watched.facts.device_id,
        watched.driver,
        memory=watched.memory_reader,
        capacity_bytes=watched.facts.capacity_bytes,
        faults=faults,
    )


def fixed_sources(
    watched: Sequence[WatchedDevice], sampler: Sampler, *, faults: bool
) -> dict[str, Availability]:
    """Return those sources that stay as they were when the sampler started."""
    counted = of_all(sampler.faults(device.facts.device_id) for device in watched)
    return {
        "kernel_counters": of_all(device.counters for device in watched),
        "faults": counted if faults else NOT_ASKED_FOR,
        "device_memory": of_all(device.memory for device in watched),
        "nvml": of_all(device.nvml for device in watched),
    }


def renewed(watched: WatchedDevice, names: tuple[str, ...]) -> RecordedDevice:
    """Return a device's facts with another chain than it had, and the capacity that leaves.

    Where the driver cannot tell its free memory just now, the capacity stays as it was.
    """
    capacity_bytes = watched.facts.capacity_bytes
    if watched.driver is not None:
        with contextlib.suppress(UvmError, MemoryError):
            capacity_bytes = _capacity_bytes(watched.facts.device_id, watched.driver)
    return dataclasses.replace(watched.facts, chain=names, capacity_bytes=capacity_bytes)

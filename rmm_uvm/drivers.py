# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Drivers: how the package reaches a GPU or a simulated device.

Covers making a driver for one device. Does not cover memory resources; see `rmm_uvm.mr`.

Environment
-----------
RMM_UVM_COUNTERS
    ``off`` leaves the UVM kernel driver's byte counters alone; residence is then inferred from
    device memory having stayed free.
RMM_UVM_DRIVER
    ``cuda`` (default), or ``simulated``, ``simulated:SIZE`` or ``simulated:SIZE@MACHINE`` for a
    simulated device where none is named in the call.
"""

from __future__ import annotations

import os

from rmm_uvm._lib.cuda import CudaDriver
from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.sim import SimulatedDevice, default_driver_settings
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.driver_names import DRIVERS, simulated_named
from rmm_uvm.support.machine_files import Machine, as_machine
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import VA_BLOCK_BYTES, parse_bytes, whole_number
from rmm_uvm.support.variables import setting

__all__ = [
    "CudaDriver",
    "SimulatedDevice",
    "UvmDriver",
    "choose_driver",
    "counters_are_on",
    "cuda_driver",
    "simulated_device",
]

_MOST_NEIGHBORS = 7  # of the model, which has eight devices
_MOST_NUMA_NODES = 1024  # of Linux


def cuda_driver(device: int = 0) -> CudaDriver:
    """Open a GPU.

    Parameters
    ----------
    device : int
        CUDA ordinal, counted from 0 among the visible devices. No other device is touched.

    Returns
    -------
    CudaDriver
        Thread-safe. Opening it moves up to 8 MiB to the device and back, to test what it relies
        on.

    Raises
    ------
    DriverError
        If there is no NVIDIA driver, it is older than CUDA 12.2, or the device does not exist.
    ConfigurationError
        If ``RMM_UVM_COUNTERS`` is neither "on" nor "off".
    """
    return CudaDriver(device, counters=counters_are_on())


def counters_are_on() -> bool:
    """Return whether ``RMM_UVM_COUNTERS`` lets the kernel driver's counters be read.

    Raises
    ------
    ConfigurationError
        If it is neither "on" nor "off".
    """
    counters = os.environ.get("RMM_UVM_COUNTERS", "on").strip().lower()
    if counters not in ("on", "off", ""):
        raise ConfigurationError(f"RMM_UVM_COUNTERS is {shown(counters)}: use 'on' or 'off'")
    return counters != "off"


def simulated_device(
    memory: int | str = "16GiB",
    *,
    host_memory: int | str | None = None,
    backing: bool = False,
    concurrent_managed_access: bool = True,
    discard: bool = True,
    counters: bool = True,
    tells_moves: bool = True,
    direct_migration: bool = False,
    integrated: bool = False,
    numa_node: int | None = None,
    device: int = 0,
    neighbors: int = 0,
    machine: str | os.PathLike[str] | Machine | None = None,
    evict_pages: bool = False,
) -> SimulatedDevice:
    """Make a device without a GPU: it follows the UVM kernel driver's rules, in modelled time.

    Parameters
    ----------
    memory : int or str
        Device memory, bytes or such as "16GiB"; a multiple of 2 MiB, > 0.
    host_memory : int or str, optional
        Host memory that migrated pages may take, bytes; by default without limit.
    backing : bool
        Put real, zeroed host memory behind the addresses. Without it they are only reserved, and
        reading one from Python ends the process.
    concurrent_managed_access, discard, counters : bool
        Features that the device has; without them it behaves like WSL2, an old driver, or a kernel
        without UVM tools.
    tells_moves : bool
        Accounts of lines are told every byte that moves. Without it, as of a GPU, they are told
        what was asked for, and see the rest in short windows.
    direct_migration : bool
        Migrations past libcuda (`UvmDriver.migrate`); budgets then use them.
    integrated : bool
        Its memory is the host's, as in a DGX Spark: no page moves, and there is no other memory.
    numa_node : int, optional
        The NUMA node of the host that its memory is, 0 to 1023, as with Grace. It says so; no node
        is made.
    device : int
        Ordinal that it claims.
    neighbors : int
        Idle devices like it, with peer access, 0 to 7; their ordinals are 0 to `neighbors` without
        its own. Memory may leave to them: `rmm_uvm.residency.Budget.neighbors`.
    machine : str, path or Machine, optional
        Whose rates and times it has: the name of a machine profile, its file, or the profile
        itself; by default "h200-pcie5". The profile's memory does not count. Its third tier, if it
        has one, takes what `host_memory` has no room for.
    evict_pages : bool
        Memory is taken and freed in pages of 4 KiB, as in simulators of papers, and not in blocks
        of 2 MiB, as the kernel driver does.

    Returns
    -------
    SimulatedDevice
        Thread-safe. Use it on the default stream only.

    Raises
    ------
    ConfigurationError
        If `memory` is not a positive multiple of 2 MiB, there are too many neighbours, or
        `numa_node` is no number of a node; if an integrated device is to have neighbours or
        `host_memory`; if there is no such machine.
    DataError
        If a machine's file cannot be read.

    Examples
    --------
    >>> import rmm_uvm
    >>> rmm_uvm.simulated_device("64MiB").memory()
    (67108864, 67108864)
    """
    capacity_bytes = parse_bytes(memory, name="memory")
    if capacity_bytes % VA_BLOCK_BYTES:
        raise ConfigurationError(
            f"memory={shown(memory)}: a simulated device has a multiple of 2 MiB"
        )
    if numa_node is not None and whole_number(numa_node) not in range(_MOST_NUMA_NODES):
        raise ConfigurationError(
            f"numa_node={shown(numa_node)}: a node is 0 to {_MOST_NUMA_NODES - 1}"
        )
    if not 0 <= neighbors <= _MOST_NEIGHBORS:
        raise ConfigurationError(
            f"neighbors={shown(neighbors)}: a simulated device has 0 to {_MOST_NEIGHBORS}"
        )
    if integrated and (neighbors or host_memory is not None):
        raise ConfigurationError(
            "an integrated device has the only memory of its machine: leave out host_memory and "
            "neighbors"
        )
    profile = None if machine is None else as_machine(machine)
    return SimulatedDevice(
        capacity_bytes,
        host_bytes=None if host_memory is None else parse_bytes(host_memory, name="host_memory"),
        backing=backing,
        concurrent_managed_access=concurrent_managed_access,
        discard=discard,
        counters=counters,
        tells_moves=tells_moves,
        direct_migration=direct_migration,
        integrated=integrated,
        numa_node=numa_node,
        device_id=device,
        neighbors=neighbors,
        machine=None if profile is None else profile.constants(),
        third_tier=None if profile is None else profile.behind_host(),
        driver={**default_driver_settings(), "evict_pages": evict_pages},
    )


def choose_driver(device: int = 0, driver: UvmDriver | str | None = None) -> UvmDriver:
    """Return the driver that is meant: given, named, named by the environment, or the GPU's.

    Parameters
    ----------
    device : int
        CUDA ordinal, >= 0; ignored when `driver` is a driver.
    driver : UvmDriver, str or None
        A driver; "cuda", "simulated", "simulated:SIZE" or "simulated:SIZE@MACHINE"; None for
        ``RMM_UVM_DRIVER``.

    Raises
    ------
    ConfigurationError
        If the name is none of these, no simulated device has the size, there is no such machine,
        or the ordinal is negative.
    DriverError
        If there is no such device.
    """
    if isinstance(driver, UvmDriver):
        return driver
    if not isinstance(device, int) or isinstance(device, bool) or device < 0:
        raise ConfigurationError(f"device={shown(device)}: devices are numbered from 0")
    if driver is not None and not isinstance(driver, str):
        raise ConfigurationError(f"driver={shown(driver)}: {DRIVERS}")
    name = driver if driver is not None else setting("RMM_UVM_DRIVER")
    source = "RMM_UVM_DRIVER" if driver is None else "driver"
    simulated = simulated_named(name or "cuda", f"{source}={shown(name)}")
    if simulated is None:
        return cuda_driver(device)
    counters_are_on()  # a value that cannot be used is an error here, too
    return simulated_device(simulated.memory_bytes, machine=simulated.machine, device=device)

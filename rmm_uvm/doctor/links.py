# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Neighbours: which devices memory may leave to, and what the links between them carry.

Covers looking and measuring. Does not cover what is moved; see `rmm_uvm.residency`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from rmm_uvm._lib.account import ManagedAccount
from rmm_uvm._lib.limits import process_account
from rmm_uvm._lib.links import measure_links
from rmm_uvm.doctor import SystemProbe
from rmm_uvm.doctor.topology import (
    NOT_MEASURED,
    DevicePair,
    HostRates,
    PairRates,
    Topology,
    TopologyDevice,
    concluded,
    describe,
)
from rmm_uvm.drivers import UvmDriver, cuda_driver
from rmm_uvm.errors import ConfigurationError, DriverError

__all__ = ["DevicePair", "HostRates", "PairRates", "Topology", "TopologyDevice", "topology"]


def topology(*, measure: bool = False, drivers: Sequence[UvmDriver] | None = None) -> Topology:
    """Tell which devices there are, who is whose neighbour, and why others are not.

    Parameters
    ----------
    measure : bool
        Measure what managed memory migrates at over every link: tens of milliseconds for each pair
        of GPUs, with at most 64 MiB at a time, which count under ``RMM_UVM_MANAGED_LIMIT``. It
        opens every GPU, which takes device memory until the process ends. What cannot be measured
        has a reason in its place.
    drivers : sequence of UvmDriver, optional
        Tell of these devices in place of the machine's GPUs, such as simulated ones; opens peer
        access between them. Each has an ordinal of its own.

    Returns
    -------
    Topology
        Without devices, or without neighbours, it says why; that is no error. Without `measure`
        and `drivers`, no CUDA context is created.

    Raises
    ------
    ConfigurationError
        If two of `drivers` claim the same ordinal, or ``RMM_UVM_MANAGED_LIMIT`` is not a size.

    Examples
    --------
    >>> import rmm_uvm
    >>> both = [rmm_uvm.simulated_device("64MiB", device=i, neighbors=1) for i in (0, 1)]
    >>> found = rmm_uvm.topology(drivers=both, measure=True)
    >>> found.neighbors(0)
    (1,)
    >>> to_host = found.devices[0].host_rates.to_host_bytes_per_second
    >>> found.pair(0, 1).rates.to_second_bytes_per_second > 5 * to_host
    True
    """
    if drivers is None:
        found = describe(SystemProbe().cuda())
        return measured(found, cuda_driver) if measure else found
    by_index = {driver.info.device_id: driver for driver in drivers}
    if len(by_index) < len(drivers):
        raise ConfigurationError(
            f"drivers claim the ordinals {sorted(driver.info.device_id for driver in drivers)}: "
            "each device has its own"
        )
    found = _described(by_index)
    return measured(found, by_index.__getitem__) if measure else found


def measured(
    found: Topology,
    open_driver: Callable[[int], UvmDriver],
    account: ManagedAccount | None = None,
) -> Topology:
    """Return a topology with rates, or with the reasons why there are none.

    Parameters
    ----------
    found : Topology
    open_driver : callable
        Returns the driver of a device by its ordinal; its `DriverError` is a reason.
    account : ManagedAccount, optional
        The cap that the memory counts under; by default that of the process.

    Raises
    ------
    ConfigurationError
        If ``RMM_UVM_MANAGED_LIMIT`` is not a size.
    """
    account = process_account() if account is None else account
    opened: dict[int, UvmDriver | DriverError] = {}
    for device in found.devices:
        try:
            opened[device.index] = open_driver(device.index)
        except DriverError as error:
            opened[device.index] = error
    return concluded(
        (_with_host_rates(device, opened[device.index], account) for device in found.devices),
        (_with_rates(pair, opened, account) for pair in found.pairs),
        found.reason,
    )


def _described(drivers: Mapping[int, UvmDriver]) -> Topology:
    """Describe devices by what their drivers say; opens neighbours."""
    devices = []
    for index, driver in sorted(drivers.items()):
        free_bytes, total_bytes = driver.memory()
        info = driver.info
        devices.append(TopologyDevice(index, info.name, info.uuid, total_bytes, free_bytes))
    return concluded(
        devices,
        (
            DevicePair(a, b, access, rates_reason=access.reason or NOT_MEASURED)
            for a, b in combinations(sorted(drivers), 2)
            for access in (drivers[a].open_neighbor(b),)
        ),
    )


def _with_host_rates(
    device: TopologyDevice, driver: UvmDriver | DriverError, account: ManagedAccount
) -> TopologyDevice:
    rates = _rates(driver, account, None)
    if isinstance(rates, str):
        return replace(device, host_rates_reason=rates)
    return replace(
        device,
        host_rates=HostRates(
            rates["to_device_bytes_per_second"], rates["to_host_bytes_per_second"]
        ),
        host_rates_reason="",
    )


def _with_rates(
    pair: DevicePair, opened: Mapping[int, UvmDriver | DriverError], account: ManagedAccount
) -> DevicePair:
    if not pair.peer_access:
        return pair
    driver = opened[pair.first]
    if not isinstance(driver, DriverError):
        access = driver.open_neighbor(pair.second)
        if not access:  # CUDA said that they could be peers, and refuses when it comes to it
            return replace(pair, peer_access=access, link="", rates_reason=access.reason)
    rates = _rates(driver, account, pair.second)
    if isinstance(rates, str):
        return replace(pair, rates_reason=rates)
    return replace(
        pair,
        rates=PairRates(
            rates["to_neighbor_bytes_per_second"], rates["from_neighbor_bytes_per_second"]
        ),
        rates_reason="",
    )


def _rates(
    driver: UvmDriver | DriverError, account: ManagedAccount, neighbor: int | None
) -> dict[str, int] | str:
    """Return what was measured, or why nothing was."""
    if isinstance(driver, DriverError):
        return str(driver)
    if not (access := driver.info.concurrent_managed_access):
        return access.reason
    try:
        return measure_links(driver, account, neighbor)
    except (DriverError, MemoryError) as error:
        return str(error)

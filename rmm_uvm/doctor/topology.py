# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which devices can be each other's neighbours, and why others cannot: values and conclusions.

Pure functions over what the doctor found. Does not cover measuring; see `rmm_uvm.neighbors`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from rmm_uvm.doctor.facts import CudaFacts, DeviceFacts, PairFacts
from rmm_uvm.machine.device_info import Availability

__all__ = ["DevicePair", "HostRates", "PairRates", "Topology", "TopologyDevice", "describe"]

NOT_MEASURED = "not measured"
# CUDA Driver API, cuCtxEnablePeerAccess: "a system-wide maximum of eight peer connections".
_MOST_PEERS_WITHOUT_SWITCH = 8


@dataclass(frozen=True)
class HostRates:
    """Rates of migrations between a device and the host, in bytes per second."""

    to_device_bytes_per_second: int
    to_host_bytes_per_second: int


@dataclass(frozen=True)
class PairRates:
    """Rates of migrations between the two devices of a pair, in bytes per second."""

    to_second_bytes_per_second: int
    to_first_bytes_per_second: int


@dataclass(frozen=True)
class TopologyDevice:
    """One device.

    Attributes
    ----------
    index : int
        CUDA ordinal.
    name, uuid : str
    total_bytes : int
        Device memory.
    free_bytes : int or None
        What no process uses; None if it is not told.
    is_mig : bool
        Whether it is an instance of a GPU that MIG divides.
    kernel_fraction : float or None
        How busy it is: the part of NVML's latest sampling period, of a sixth of a second to a
        second, in which a kernel ran. None if it is not told.
    host_rates : HostRates or None
        None unless measured; `host_rates_reason` then says why.
    """

    index: int
    name: str
    uuid: str
    total_bytes: int
    free_bytes: int | None
    is_mig: bool = False
    kernel_fraction: float | None = None
    host_rates: HostRates | None = None
    host_rates_reason: str = NOT_MEASURED


@dataclass(frozen=True)
class DevicePair:
    """Two devices.

    Attributes
    ----------
    first, second : int
        CUDA ordinals, the smaller one first.
    peer_access : Availability
        Whether each can use the other's memory, so that managed memory of one can leave to the
        other; or why not.
    link : str
        "NVLink" or "PCIe" for peers where NVML tells; else empty.
    rates : PairRates or None
        None unless measured; `rates_reason` then says why.
    """

    first: int
    second: int
    peer_access: Availability
    link: str = ""
    rates: PairRates | None = None
    rates_reason: str = NOT_MEASURED


@dataclass(frozen=True)
class Topology:
    """The devices of a machine and what connects them.

    Attributes
    ----------
    devices : tuple of TopologyDevice
        In order of their CUDA ordinals.
    pairs : tuple of DevicePair
        Each two of them, once.
    reason : str
        Why no device has a neighbour; empty if one has.
    remark : str
        What limits those that have; may be empty.
    """

    devices: tuple[TopologyDevice, ...] = ()
    pairs: tuple[DevicePair, ...] = ()
    reason: str = ""
    remark: str = ""

    def pair(self, first: int, second: int) -> DevicePair:
        """Return the pair of two devices, in any order.

        Raises
        ------
        KeyError
            If there is no such pair.
        """
        for pair in self.pairs:
            if {pair.first, pair.second} == {first, second}:
                return pair
        raise KeyError((first, second))

    def neighbors(self, device: int) -> tuple[int, ...]:
        """Return the ordinals of the devices that memory of `device` may leave to."""
        return tuple(
            pair.second if pair.first == device else pair.first
            for pair in self.pairs
            if pair.peer_access and device in (pair.first, pair.second)
        )


def describe(cuda: CudaFacts) -> Topology:
    """Conclude who is whose neighbour from what CUDA and NVML tell, without a CUDA context."""
    return concluded(
        (
            TopologyDevice(
                index=device.index,
                name=device.name,
                uuid=device.uuid,
                total_bytes=device.total_bytes,
                free_bytes=device.free_bytes,
                is_mig=device.is_mig,
                kernel_fraction=device.kernel_fraction,
            )
            for device in cuda.devices
        ),
        (_pair(a, b, cuda) for a, b in combinations(cuda.devices, 2)),
        cuda.reason,
    )


def concluded(
    devices: Iterable[TopologyDevice], pairs: Iterable[DevicePair], no_device: str = ""
) -> Topology:
    """Return the topology of devices and pairs, with what follows from them all."""
    found = Topology(tuple(devices), tuple(pairs))
    return Topology(found.devices, found.pairs, _reason(found, no_device), _remark(found))


def _pair(a: DeviceFacts, b: DeviceFacts, cuda: CudaFacts) -> DevicePair:
    told = cuda.pairs.get((a.index, b.index), PairFacts())
    if {(a.index, b.index), (b.index, a.index)} <= cuda.peers:
        if reason := _cannot_migrate(a, b):
            return DevicePair(
                a.index, b.index, Availability(available=False, reason=reason), rates_reason=reason
            )
        link = "" if told.has_nvlink is None else "NVLink" if told.has_nvlink else "PCIe"
        return DevicePair(a.index, b.index, Availability(available=True), link)
    reason = _refusal(a, b, told)
    return DevicePair(
        a.index, b.index, Availability(available=False, reason=reason), rates_reason=reason
    )


def _cannot_migrate(a: DeviceFacts, b: DeviceFacts) -> str:
    """Return why memory cannot leave from one peer to the other; empty if it can."""
    for device in (a, b):
        if not device.concurrent_managed_access:
            return f"device {device.index} has no concurrent managed access"
    return ""


def _refusal(a: DeviceFacts, b: DeviceFacts, told: PairFacts) -> str:
    """Return why CUDA gives two devices no access to each other, as far as it can be told."""
    if a.is_mig or b.is_mig:
        return "an instance of a GPU that MIG divides has no peers"
    if told.refusal:
        return f"no peer access: {told.refusal}"
    if told.has_nvlink:
        return (
            "NVLink connects them, but CUDA refuses: the container or virtual machine keeps them "
            "apart"
        )
    if a.name != b.name:
        return f"no peer access between different models ({a.name}, {b.name})"
    return "no direct link between them"


def _reason(found: Topology, no_device: str) -> str:
    if not found.devices:
        return no_device or "no CUDA device"
    if len(found.devices) == 1:
        # CUDA shows a process one instance, however many there are.
        divided = ", an instance of a GPU that MIG divides" if found.devices[0].is_mig else ""
        return f"there is one device only{divided}"
    reasons = dict.fromkeys(pair.peer_access.reason for pair in found.pairs)
    return "" if "" in reasons else "; ".join(reasons)


def _remark(found: Topology) -> str:
    """Return what limits devices with more peers than CUDA connects without a switch."""
    most = max((len(found.neighbors(device.index)) for device in found.devices), default=0)
    if most <= _MOST_PEERS_WITHOUT_SWITCH or all(
        pair.link == "NVLink" for pair in found.pairs if pair.peer_access
    ):
        return ""
    return (
        f"a device has {most} peers; without NVSwitch CUDA connects it to "
        f"{_MOST_PEERS_WITHOUT_SWITCH} at a time, and memory leaves to those that come first"
    )

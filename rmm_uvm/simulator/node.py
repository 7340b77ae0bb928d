# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A machine with several GPUs that is not there, for programs that run beside each other on it.

Covers making it, what its links carried, and programs that are not played out. Does not cover its
devices (see `rmm_uvm.drivers`), nor one program on several GPUs (see `rmm_uvm.simulator`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rmm_uvm._lib.sim import TOPOLOGIES, NodeModel, SimulatedDevice
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.simulator.checks import checked_links, checked_whole
from rmm_uvm.support.machine_profile import Machine
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import VA_BLOCK_BYTES, parse_bytes

__all__ = ["HOST", "TOPOLOGIES", "LinkTraffic", "SimulatedNode"]

HOST: Final = "host"
"""The host, as one end of a link."""

_MOST_GPUS = 8


class LinkTraffic(NamedTuple):
    """Traffic one way over a link: bytes copied, and the modelled time that the copies took."""

    nbytes: int
    busy_ns: float


class SimulatedNode:
    """A machine with simulated GPUs, each for one program with memory and a clock of its own.

    GPUs share links, host memory, and what another program leaves of their memory. A program's
    counters tell what its own memory did, wherever that was; memory of another program cannot be
    named.

    Parameters
    ----------
    gpus : int
        1 to 8.
    memory : int or str
        Memory of each GPU, bytes or such as "16GiB"; a multiple of 2 MiB, > 0.
    topology : {"nvswitch", "pairs", "pcie"}
        Between which GPUs pages go without the host between: all; 0 and 1, 2 and 3, ...; none.
    links : sequence of int, optional
        For each GPU the number of its link to the host, from 0; GPUs with the same number share
        it. By default each has its own.
    host_memory : int or str, optional
        Host memory that migrated pages of all programs may take, bytes; by default without limit.
    backing : bool
        Put real, zeroed host memory behind the addresses. Without it they are only reserved.
    discard, counters : bool
        Features that the devices have, as of `rmm_uvm.simulated_device`.
    direct_migration : bool
        Migrations past libcuda: whoever calls waits for them, and several threads of a budget, or
        links, are at it at once. What a budget's thread would do goes beside the program between
        ``device.migrate_beside(beside=True)`` and the same with False.
    places_at_once : bool
        False has such threads fetch from one place after the other: what that costs is what
        parallel fetch brings.
    machine : Machine, optional
        Rates and times; by default those of "h200-pcie5". Its device memory does not count; its
        third tier, if it has one, takes what the host has no room for.

    Attributes
    ----------
    devices : tuple of SimulatedDevice
        One for each GPU; its ordinal is its number.

    Raises
    ------
    ConfigurationError
        If a value is out of its bounds, or the topology is unknown.

    Notes
    -----
    Thread-safe. Kernels take time of their own here. A program's operations follow one another on
    its own clock, ``device.statistics()["modelled_ns"]``, and what a budget moves on streams of its
    own goes beside; links are shared by those that use them at the same modelled time.
    ``docs/understand/simulator.md`` says what is not modelled.

    Examples
    --------
    >>> import rmm_uvm
    >>> node = rmm_uvm.simulated_node(2, "64MiB")
    >>> mr = rmm_uvm.mr.ManagedMemoryResource(node.devices[0], prefetch="never")
    >>> data = mr.allocate(4 << 20)
    >>> node.devices[0].touch(data, 4 << 20, write=True)
    >>> node.devices[0].resident_bytes(data, 4 << 20)
    4194304
    >>> mr.deallocate(data, 4 << 20)
    """

    def __init__(
        self,
        gpus: int = 2,
        memory: int | str = "16GiB",
        topology: str = "nvswitch",
        *,
        links: Sequence[int] | None = None,
        host_memory: int | str | None = None,
        backing: bool = False,
        discard: bool = True,
        counters: bool = True,
        direct_migration: bool = False,
        places_at_once: bool = True,
        machine: Machine | None = None,
    ) -> None:
        gpus = checked_whole(gpus, "gpus", 1, _MOST_GPUS)
        capacity_bytes = parse_bytes(memory, name="memory")
        if capacity_bytes % VA_BLOCK_BYTES:
            raise ConfigurationError(
                f"memory={shown(memory)}: a simulated GPU has a multiple of 2 MiB"
            )
        if topology not in TOPOLOGIES:
            raise ConfigurationError(
                f"topology={shown(topology)}: use one of {', '.join(map(repr, TOPOLOGIES))}"
            )
        if machine is not None and not isinstance(machine, Machine):
            raise ConfigurationError(f"machine={shown(machine)}: use load_machine('h200-pcie5')")
        self.gpus = gpus
        self.topology = topology
        self._model = NodeModel(
            capacity_bytes,
            gpus=gpus,
            topology=topology,
            links=checked_links(links, gpus),
            host_bytes=(
                None if host_memory is None else parse_bytes(host_memory, name="host_memory")
            ),
            backing=backing,
            discard=discard,
            counters=counters,
            direct_migration=direct_migration,
            places_at_once=places_at_once,
            machine=None if machine is None else machine.constants(),
            driver=None,
            third_tier=None if machine is None else machine.behind_host(),
        )

    @property
    def devices(self) -> tuple[SimulatedDevice, ...]:
        """One for each GPU."""
        return self._model.devices

    def occupy(self, gpu: int, nbytes: int | str) -> None:
        """Let a program on a GPU hold so much cudaMalloc memory there from now on, all at once.

        Beside what was allocated through its device; a smaller number gives memory back. Managed
        pages leave for it, to the host. No sooner than anything that any program did.

        Raises
        ------
        ConfigurationError
            If there is no such GPU.
        MemoryError
            If it has not as much.
        """
        size_bytes = 0 if nbytes == 0 else parse_bytes(nbytes, name="nbytes")
        self._model.occupy(checked_whole(gpu, "gpu", 0, self.gpus - 1), size_bytes)

    def synchronize(self) -> float:
        """Let all programs wait for the one that is furthest; return its time, modelled ns."""
        return self._model.synchronize()

    def traffic(self) -> dict[tuple[int | str, int | str], LinkTraffic]:
        """Return what was copied so far, by where it came from and where it went.

        Returns
        -------
        dict of (int or "host", int or "host") to LinkTraffic
            For each pair of GPUs what went without the host between, and for each GPU what went
            over its link to the host, each way; GPUs that share a link have the same there.
        """
        found: dict[tuple[int | str, int | str], LinkTraffic] = {}
        for gpu in range(self.gpus):
            found[HOST, gpu] = LinkTraffic(*self._model.host_traffic(gpu, to_host=False))
            found[gpu, HOST] = LinkTraffic(*self._model.host_traffic(gpu, to_host=True))
            for peer in range(self.gpus):
                if peer != gpu:
                    found[gpu, peer] = LinkTraffic(*self._model.peer_traffic(gpu, peer))
        return found

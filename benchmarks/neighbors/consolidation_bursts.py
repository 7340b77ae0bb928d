# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How fast much comes back at once, by how the GPUs of a simulated node are joined.

Programs of `consolidation_programs.py` use 8 MiB at a time, which lie in one place as a rule. What
parallel and multi-path fetch do for a burst is seen here: half of it lies at a neighbour and half
on the host, or all of it on the host.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import rmm_uvm
from benchmarks.neighbors.consolidation_programs import MIB, memory_bytes
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import NeighborWarning
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import load_machine

SIZES = {"piece_bytes": 8 * MIB, "fetch_bytes": 32 * MIB}


@dataclass(frozen=True)
class Joined:
    """How GPU 0 is joined to a neighbour, and both to the host."""

    name: str
    topology: str
    neighbor: int = 1
    links: Sequence[int] | None = None  # to the host, by GPU; by default each its own


JOINED = (
    Joined("NVSwitch", "nvswitch"),
    Joined("NVLink pair", "pairs"),
    Joined("NVSwitch, both GPUs on one link to the host", "nvswitch", links=(0, 0, 1, 1)),
    Joined("NVLink pairs, a GPU of another pair", "pairs", neighbor=2),
    Joined("PCIe only", "pcie"),
)


class Burst:
    """Data of GPU 0 under a budget, written; `beside_bytes` of them find room at a neighbour."""

    def __init__(
        self,
        joined: Joined,
        machine: str,
        gpu_bytes: int,
        beside_bytes: int,
        *,
        places_at_once: bool = True,
        multipath: bool = False,
    ) -> None:
        self.node = rmm_uvm.simulated_node(
            4,
            gpu_bytes,
            joined.topology,
            links=joined.links,
            direct_migration=True,
            places_at_once=places_at_once,
            machine=load_machine(machine),
        )
        self.device: SimulatedDevice = self.node.devices[0]
        self.neighbor = joined.neighbor
        self.is_full = beside_bytes == 0
        self.nbytes = gpu_bytes // 2
        budget = Budget(
            self.nbytes,
            neighbors=[joined.neighbor],
            harvest_limit=beside_bytes or None,
            board=None,
            background=False,
            multipath=multipath,
            **SIZES,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NeighborWarning)  # why there is none is in the row
            self.mr = rmm_uvm.managed_pool(
                driver=self.device,
                device_budget=budget,
                initial_pool_size=self.nbytes,
                maximum_pool_size=self.nbytes,
            )
        self.prefetcher = self.mr.managed_mr.residency
        self.refused = " ".join(self.prefetcher.refused_neighbors)
        self.address = int(self.mr.allocate(self.nbytes))
        self.device.touch(self.address, self.nbytes, write=True)

    def seconds(self) -> float:
        """Send all away, fetch it; return the modelled time of fetching, the second time."""
        passed_ns = 0
        for _ in range(2):  # host pages are taken for the first time before
            if self.is_full:  # while data leave, not while they come back
                self.node.occupy(self.neighbor, self.device.memory()[1])
                self.prefetcher.run_pending()  # sees it, as the budget's thread would
            self.prefetcher.evict(self.address, self.nbytes)
            self.node.occupy(self.neighbor, 0)
            self.node.synchronize()
            begin_ns = self.device.statistics()["modelled_ns"]
            self.prefetcher.bring(self.address, self.nbytes)
            passed_ns = self.device.statistics()["modelled_ns"] - begin_ns
        if self.device.resident_bytes(self.address, self.nbytes) != self.nbytes:
            raise AssertionError("not all of a burst came back")
        return passed_ns / 1e9


def burst_row(joined: Joined, machine: str, memory: str) -> dict[str, Any]:
    """Return modelled seconds of a burst of half a GPU's memory, by each way."""
    gpu_bytes = memory_bytes(memory)
    row: dict[str, Any] = {"joined": joined.name, "bytes": gpu_bytes // 2}
    for name, at_once in (("halves in turn", False), ("halves at once", True)):
        one = Burst(joined, machine, gpu_bytes, gpu_bytes // 4, places_at_once=at_once)
        if one.refused:
            row["refused"] = one.refused
        else:
            row[name] = one.seconds()
    for name, multipath in (("over its own link", False), ("over both links", True)):
        one = Burst(joined, machine, gpu_bytes, 0, multipath=multipath)
        row[name] = one.seconds()
        kept = one.prefetcher.residency() or {}
        row["staged_bytes"] = kept["staged_bytes"] // 2  # of two fetches
    return row

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sides: under which memory a program runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import rmm

import rmm_uvm
from benchmarks.common.past_the_edge.memory import Memory, SimulatedMemory, TorchAllocations
from rmm_uvm.integrations import wire
from rmm_uvm.residency import Budget

_MANAGED_OF_DATA = 2  # the largest pool, of the data: the rest is for what a program makes of them


@dataclass(frozen=True)
class Side:
    """What is compared.

    Parameters
    ----------
    name : str
        What rows call it.
    budget : mapping or None
        Settings of the budget beside its size; None for a pool of cudaMalloc memory, of any size.
    seen : bool
        Whether calls of cuDF are announced, as they are by default.
    announced : bool
        Whether the program calls `rmm_uvm.touch` before it uses data, or runs within
        `rmm_uvm.torch.announced`.
    torch : {"", "migrate", "copy", "auto"}
        What `rmm_uvm.torch.install` is given as ``activations``; empty where torch allocates
        through RMM.
    fault_driven : bool
        Whether memory comes by page faults: then nobody can keep a budget while a kernel runs, and
        what counts is the average over time.
    prefetched : bool
        Whether RMM's adaptor prefetches each allocation when it is handed out.
    instead : str
        What people use in place of managed memory, on as much device memory. ``pinned``,
        ``buffered``: the program itself keeps its data on the host, and copies them in.
        ``spilling``: cuDF spills. ``behind``: host memory is handed out once the device's is.
        ``streaming``: cudf-polars streams. ``dask``: Dask-CUDA's worker spills. ``checkpointing``:
        torch runs blocks of a model again in the backward pass. ``saved``: what autograd keeps is
        copied to pinned host memory by `torch.autograd.graph.save_on_cpu`.
    """

    name: str
    budget: Mapping[str, Any] | None = field(default_factory=dict)
    seen: bool = True
    announced: bool = False
    torch: Literal["", "migrate", "copy", "auto"] = ""
    fault_driven: bool = False
    prefetched: bool = False
    instead: str = ""

    @property
    def budgeted(self) -> bool:
        """Whether it has a budget."""
        return self.budget is not None

    @property
    def prefetch(self) -> Literal["auto", "always"]:
        """What the pool is told of prefetches: the budget ranks what is prefetched anew."""
        return "always" if self.prefetched else "auto"

    @property
    def keeps_dead(self) -> bool:
        """Whether it keeps dead memory as if it were live."""
        return self.budget is not None and not self.budget.get("discard_dead", True)

    def as_row(self) -> dict[str, Any]:
        """Return it as a file has it."""
        return {**asdict(self), "budgeted": self.budgeted, "keeps_dead": self.keeps_dead}


RESIDENT = Side("resident", None)
DEFAULT = Side("default")
LRU = Side("lru", {"policy": "lru"})
COPIED_EACH_TIME = Side("copied-each-time", {"keep_copies": False})
UNSEEN = Side("unseen", seen=False, fault_driven=True)
ANNOUNCED = Side("announced", announced=True)
NOT_AHEAD = Side("not-ahead", {"ahead": False})
DEAD_FIRST = Side("dead-first", {"ahead": False, "rank_dead": False})
ANNOUNCED_NOT_AHEAD = Side("announced-not-ahead", {"ahead": False}, announced=True)
LAZY = Side("lazy", torch="migrate")
COPIES = Side("copies", torch="copy")
AUTOMATIC = Side("automatic", torch="auto")
FAULT_DRIVEN = Side(
    "fault-driven",
    {"policy": "fifo", "discard_dead": False, "fetch": False, "background": False},
    fault_driven=True,
)
# On a GPU the kernel driver's own prefetching is in both: pages come by its faults.
FAULT_DRIVEN_PREFETCHED = replace(FAULT_DRIVEN, name="fault-driven-prefetched", prefetched=True)
ALTERNATIVES = (
    Side("by-hand", None, instead="pinned"),
    Side("by-hand-buffered", None, instead="buffered"),
    Side("cudf-spilling", None, instead="spilling"),
    Side("pinned-behind", None, instead="behind"),
    Side("polars-streaming", None, instead="streaming"),
    Side("dask-spilling", None, instead="dask"),
    Side("checkpointing", None, instead="checkpointing"),
    Side("save-on-cpu", None, instead="saved"),
)
BASELINES = (FAULT_DRIVEN, FAULT_DRIVEN_PREFETCHED, *ALTERNATIVES)
"""
What else there is at the same device memory: what stands for the kernel driver on a card of the
budget's size, of which the faster one counts, and what people use instead.
"""
SIDES = {
    side.name: side
    for side in (
        *(RESIDENT, DEFAULT, LRU, COPIED_EACH_TIME, UNSEEN, ANNOUNCED, LAZY, COPIES, AUTOMATIC),
        *(NOT_AHEAD, DEAD_FIRST, ANNOUNCED_NOT_AHEAD),
        *BASELINES,
    )
}


def managed_bytes(data_bytes: int) -> int:
    """Return the most managed memory that a run takes whose data have so many bytes."""
    return _MANAGED_OF_DATA * data_bytes // 256 * 256


def open_memory(
    side: Side, driver: Any, budget_bytes: int, data_bytes: int
) -> tuple[Memory, Callable[[], None]]:
    """Return the memory of a side, installed for RMM, and what gives it back.

    Nothing may have been allocated from the pool when it is given back.
    """
    if side.torch:
        return _open_torch(side, driver, budget_bytes, data_bytes)
    most_bytes = managed_bytes(data_bytes)
    device = driver.info.device_id
    if side.budget is None:
        previous = rmm.mr.get_per_device_resource(device)
        free_bytes = driver.memory()[0]
        own = device_memory(side, budget_bytes, most_bytes)
        memory = Memory(driver, own, managed=False, free_before_bytes=free_bytes)
        wire("cupy")
        rmm.mr.set_per_device_resource(device, memory.mr)
        return memory, lambda: rmm.mr.set_per_device_resource(device, previous)
    installed = rmm_uvm.reinitialize(
        maximum_pool_size=most_bytes,
        device_budget=Budget(budget_bytes, **side.budget),
        prefetch=side.prefetch,
        driver=driver,
        monitor=False,
    )
    if not side.seen:
        for wiring in installed.wirings:
            if wiring.library == "libcudf_calls":
                wiring.undo()
    mr: Any = installed.managed_mr
    pool = rmm.mr.PrefetchResourceAdaptor(mr) if side.prefetched else mr
    memory = Memory(driver, pool, mr.managed_mr.residency, keeps_dead=side.keeps_dead)
    rmm.mr.set_per_device_resource(device, memory.mr)

    def give_back() -> None:
        nonlocal mr
        rmm.mr.set_per_device_resource(device, mr)  # what was installed: restoring tells nobody
        mr = None
        rmm_uvm.restore()

    return memory, give_back


def device_memory(side: Side, budget_bytes: int, most_bytes: int) -> Any:
    """Return memory without a budget: `budget_bytes` at most, or `most_bytes` where all fits."""
    if not side.instead:
        return rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), most_bytes)
    if side.instead in ("pinned", "buffered"):
        cuda = rmm.mr.CudaMemoryResource()
        return rmm.mr.PoolMemoryResource(cuda, budget_bytes, budget_bytes)
    device = rmm.mr.LimitingResourceAdaptor(rmm.mr.CudaAsyncMemoryResource(), budget_bytes)
    return pinned_behind(device, most_bytes) if side.instead == "behind" else device


def pinned_behind(device: Any, host_bytes: int, host: Any = None) -> Any:
    """Return memory of the device as long as there is some, then of the host, pinned.

    Kernels read and write what is on the host over the link. RMM 26.10 has no adaptor for it in
    Python: a callback stands in, which takes a few microseconds a call.

    Parameters
    ----------
    device : rmm.mr.DeviceMemoryResource
        Refuses once it has no more.
    host_bytes : int
        Of the pool of pinned memory.
    host : rmm.mr.DeviceMemoryResource, optional
        In its place, where there is no CUDA.
    """
    if host is None:
        host = rmm.mr.PoolMemoryResource(rmm.mr.PinnedHostMemoryResource(), host_bytes, host_bytes)
    on_host: set[int] = set()

    def allocate(nbytes: int, stream: Any) -> int:
        try:
            return int(device.allocate(nbytes, stream))
        except MemoryError:
            address = int(host.allocate(nbytes, stream))
        on_host.add(address)
        return address

    def deallocate(address: int, nbytes: int, stream: Any) -> None:
        if address in on_host:
            on_host.remove(address)
            host.deallocate(address, nbytes, stream)
        else:
            device.deallocate(address, nbytes, stream)

    return rmm.mr.CallbackMemoryResource(allocate, deallocate)


def _open_torch(
    side: Side, driver: Any, budget_bytes: int, data_bytes: int
) -> tuple[Memory, Callable[[], None]]:
    """Return the same where torch's own allocator has the budget, for the rest of the process."""
    import torch

    import rmm_uvm.torch

    assert side.torch
    installed = rmm_uvm.torch.install(
        driver.info.device_id,
        device_budget=Budget(budget_bytes, **(side.budget or {})),
        activations=side.torch,
        maximum=managed_bytes(data_bytes),
    )

    def away_bytes() -> int:
        copies = installed.statistics()["activations"]
        return 0 if copies is None else int(copies["away_bytes"])

    memory = Memory(
        driver,
        None,
        installed.managed_mr.residency,
        keeps_dead=side.keeps_dead,
        live=TorchAllocations(driver.info.device_id, away_bytes),
    )
    # Not closed: what copies go through is device memory, which has to be counted first.
    return memory, torch.cuda.empty_cache


@contextmanager
def warming_torch_up(side: Side, driver: Any, data_bytes: int) -> Iterator[None]:
    """Have torch allocate as it will on a side, within a ``with`` block from cudaMalloc memory.

    To be called once, before torch allocates: through RMM it does for the rest of the process. What
    it has within the block must be freed there.
    """
    if side.torch:
        yield
        return
    told = wire("torch")
    if not told.active:
        raise SystemExit(f"torch: {told.reason}")
    device = driver.info.device_id
    previous = rmm.mr.get_per_device_resource(device)
    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), data_bytes // 256 * 256)
    rmm.mr.set_per_device_resource(device, pool)
    try:
        yield
    finally:
        rmm.mr.set_per_device_resource(device, previous)


def open_simulated(
    side: Side, driver: Any, budget_bytes: int, data_bytes: int
) -> tuple[Memory, Callable[[], None]]:
    """Return the same on a simulated device, without the thread: it goes by another clock."""
    most_bytes = managed_bytes(data_bytes)
    if side.budget is None:
        upstream = rmm_uvm.mr.SimulatedCudaMemoryResource(driver)
        pool = rmm.mr.PoolMemoryResource(upstream, most_bytes)
        return SimulatedMemory(driver, pool, managed=False), lambda: None
    settings = {**side.budget, "background": False}
    mr = rmm_uvm.managed_pool(
        driver=driver,
        maximum_pool_size=most_bytes,
        device_budget=Budget(budget_bytes, **settings),
        prefetch=side.prefetch,
    )
    pool = _prefetching(mr, driver) if side.prefetched else mr
    residency = mr.managed_mr.residency
    return SimulatedMemory(driver, pool, residency, keeps_dead=side.keeps_dead), lambda: None


def _prefetching(mr: Any, driver: Any) -> Any:
    """Return what RMM's prefetch adaptor is on a simulated device, which CUDA does not know."""

    def allocate(nbytes: int, stream: Any) -> int:
        address = int(mr.allocate(nbytes, stream))
        driver.prefetch(address, nbytes)
        return address

    return rmm.mr.CallbackMemoryResource(allocate, mr.deallocate)

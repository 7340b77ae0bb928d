# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The memory that a side runs on, and what the judges ask of it."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

import rmm

from benchmarks.common.past_the_edge.page_tables import HostPages, Sample
from benchmarks.common.past_the_edge.ranges import (
    BLOCK_BYTES,
    PAGE_BYTES,
    Range,
    by_block,
    bytes_of,
    joined,
)
from rmm_uvm.errors import UvmError

_PATIENCE_SECONDS = 1.0
_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: this process has nothing on the device
COUNTS = ("evicted", "dropped", "fetched", "fetched_ahead", "renewed", "faulted", "found")


class LiveAllocations:
    """What is allocated and not freed, by a tracking adaptor of RMM over the side's pool.

    It is C++, a lock and an entry of a map: 0.15 us for an allocation and its free, which take 3.4
    without it. The list costs 15 us for 200 allocations. `rmm.mr.CallbackMemoryResource` costs
    1 us, and waits for the interpreter at every allocation. (Measured on a simulated device.)

    Parameters
    ----------
    upstream_mr : rmm.mr.DeviceMemoryResource
        The side's pool. `mr` is what the program has to allocate from.
    """

    def __init__(self, upstream_mr: Any) -> None:
        self.mr = rmm.mr.TrackingResourceAdaptor(upstream_mr)

    def away_bytes(self) -> int:
        """Return bytes that live elsewhere."""
        return 0

    def ranges(self) -> list[Range]:
        """Return address and bytes of each."""
        found = []
        for line in self.mr.get_outstanding_allocations_str().splitlines():
            address, _, size = line.partition(": ")
            if size:
                found.append((int(address, 16), int(size.split()[0])))
        return found


class TorchAllocations:
    """What torch's own allocator has handed out of memory pools, by its snapshots.

    Pools of torch that are not its own are `rmm_uvm.torch`'s here. The interpreter does nothing
    else while a snapshot is taken: `--sample-ms` should leave it time.

    Parameters
    ----------
    device : int
        CUDA ordinal.
    away_bytes : callable
        Returns bytes of the program's tensors that torch has given back, since copies on the host
        stand for them.
    """

    mr = None

    def __init__(self, device: int, away_bytes: Callable[[], int]) -> None:
        self._device, self.away_bytes = device, away_bytes

    def ranges(self) -> list[Range]:
        """Return address and bytes of each."""
        import torch

        return [
            (block["address"], block["size"])
            for segment in torch.cuda.memory_snapshot()
            if segment["device"] == self._device and segment["segment_pool_id"] != (0, 0)
            for block in segment["blocks"]
            if block["state"] != "inactive"
        ]


class Memory:
    """What one process measures on.

    Parameters
    ----------
    driver : UvmDriver
        Of the device.
    pool : rmm.mr.DeviceMemoryResource or None
        What the program's memory comes from; None where it does not through RMM.
    residency : ManagedResidency or None
        The manager of the budget; None where there is none. Judges ask it for one thing: page
        tables show on the host what the host keeps a copy of, also while it is on the device. It is
        told when the budget ends, and its counts are noted.
    managed : bool
        Whether it is managed memory; else judges have nothing to look at.
    keeps_dead : bool
        Whether dead memory is kept as if it were live, so that it counts. Where it is dropped, the
        page tables cannot tell it from what is on the device.
    live : TorchAllocations, optional
        Knows what is alive; by default `LiveAllocations` of the pool.
    free_before_bytes : int, optional
        What was free on the device before: where memory is not managed, a look says what is taken.
    """

    looks_between = False
    """Whether looks are taken between operations, since no thread can keep up with the clock."""

    def __init__(
        self,
        driver: Any,
        pool: Any,
        residency: Any = None,
        *,
        managed: bool = True,
        keeps_dead: bool = False,
        live: Any = None,
        free_before_bytes: int | None = None,
    ) -> None:
        self.driver, self.managed, self.keeps_dead = driver, managed, keeps_dead
        self._free_before_bytes = free_before_bytes
        self.live: Any = live or LiveAllocations(pool)
        self.residency: Any = residency
        self._seen: list[Range] = []
        self._pages: HostPages | None = None
        self.blind = "" if managed else "no managed memory"
        if managed:
            self.blind = self._open_page_tables()

    @property
    def mr(self) -> Any:
        """What the program allocates from."""
        return self.live.mr

    def now(self) -> float:
        """Return seconds, of the clock that runs are measured with."""
        return time.perf_counter()

    def synchronize(self) -> None:
        """Wait until the device has done everything."""
        status = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()
        if status not in (0, _NO_CONTEXT):
            raise SystemExit(f"cuCtxSynchronize answered {status}")

    def moved(self) -> tuple[int, int]:
        """Return bytes that the driver counted so far, to the device and to the host."""
        return tuple(self.driver.migrated_bytes()) if self.managed else (0, 0)

    def counts(self) -> dict[str, int]:
        """Return what the manager says it did so far: for the record, not for a judge."""
        kept = None if self.residency is None else self.residency.residency()
        return {} if kept is None else {f"{n}_bytes": kept.get(f"{n}_bytes") or 0 for n in COUNTS}

    def _kept_copy_bytes(self) -> int:
        kept = None if self.residency is None else self.residency.residency()
        return 0 if kept is None else int(kept.get("kept_copy_bytes", 0))

    def live_pages(self) -> list[Range]:
        """Return live memory as pages, and remember it as having been populated."""
        live = joined(self.live.ranges(), PAGE_BYTES)
        self._seen = joined([*self._seen, *live], PAGE_BYTES)
        return live

    @property
    def seen_pages(self) -> list[Range]:
        """All that was live at some look."""
        return self._seen

    def not_on_host(self, pages: list[Range]) -> int:
        """Return bytes that the page tables do not show on the host."""
        assert self._pages is not None
        return self._pages.not_on_host(pages)

    def sample(self) -> Sample:
        """Look once."""
        begin = self.now()
        if self._free_before_bytes is not None:
            return Sample(begin, 0, max(0, self._free_before_bytes - self.driver.memory()[0]))
        live = self.live_pages()
        live_bytes = bytes_of(joined(live, BLOCK_BYTES)) + self.live.away_bytes()
        if self.blind:
            return Sample(begin, live_bytes, None)
        before = self.moved()
        held_bytes = self.not_on_host(self._seen if self.keeps_dead else live)
        came, left = (b - a for a, b in zip(before, self.moved(), strict=True))
        held_bytes += self._kept_copy_bytes()
        return Sample(begin, live_bytes, held_bytes, came, left, self.now() - begin)

    def send(self, pages: list[Range], where: str) -> int:
        """Move pages with prefetches, one for each block, and wait for them.

        Returns
        -------
        int
            Bytes that could not be moved: of dead memory that was given back since.
        """
        refused_bytes = 0
        for address, nbytes in by_block(pages):
            try:
                self.driver.prefetch(address, nbytes, where)
            except UvmError:
                refused_bytes += nbytes
        self.synchronize()
        return refused_bytes

    def end_budget(self) -> None:
        """Have the manager stop, so that it does nothing beside a judge."""
        if self.residency is not None:
            self.residency.set_budget(None)

    def close(self) -> None:
        """Let go of the pool, and of the page tables; nothing can be asked any more."""
        self.live = self.residency = None
        if self._pages is not None:
            self._pages.close()

    def _open_page_tables(self) -> str:
        """Return why they cannot be looked at; empty if they can."""
        told = self.driver.info.host_pages
        if not told.available:
            return str(told.reason)
        try:
            self._pages = HostPages()
        except OSError as error:
            return f"/proc/self/pagemap: {error}"
        return ""


class SimulatedMemory(Memory):
    """The same on a simulated device, whose clock is a modelled one."""

    looks_between = True

    def now(self) -> float:
        return float(self.driver.statistics()["modelled_ns"]) / 1e9

    def synchronize(self) -> None:
        self.driver.synchronize()

    def not_on_host(self, pages: list[Range]) -> int:
        return sum(n - self.driver.resident_bytes(a, n, "host") for a, n in by_block(pages))

    def _open_page_tables(self) -> str:
        return ""


def beside_bytes(
    driver: Any, free_before_bytes: int, release: Callable[[], object]
) -> tuple[int | None, str]:
    """Return device memory that is not managed and was taken since, or why it cannot be told.

    All managed memory is given back first: what is missing then is not of it. The kernel driver may
    take its time to have it back (about 100 MiB were missing at once in one of five runs, and in
    the others nothing), so it is looked at until nothing is missing, for a second at most.

    Parameters
    ----------
    free_before_bytes : int
        What was free before there was any, with the program's kernels loaded.
    release : callable
        Gives back the side's memory.
    """
    from rmm_uvm._lib.limits import process_account

    release()
    gc.collect()
    kept = process_account().used_bytes
    if kept:
        return None, f"{kept} bytes of managed memory are alive at the end"
    end = time.monotonic() + _PATIENCE_SECONDS
    while (missing := free_before_bytes - driver.memory()[0]) > 0 and time.monotonic() < end:
        time.sleep(_PATIENCE_SECONDS / 20)
    return max(0, missing), ""


def pinned(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run: nothing in it follows free memory, or a user's settings."""
    kept = ("RMM_UVM_MANAGED_LIMIT", "RMM_UVM_COUNTERS", "RMM_UVM_COMMIT")
    ours = {n: v for n, v in environment.items() if not n.startswith("RMM_UVM_") or n in kept}
    return {**ours, **PINNED}


PINNED = {
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # 8 of 4 MiB; by default it follows the card
    "CUBLASLT_WORKSPACE_SIZE": "4096",  # KiB, of torch
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0",  # containers set it
    "CUDNN_CONV_WSCAP_DBG": "256",  # MiB, of torch: else cuDNN's choice follows free memory
    "CUDA_MODULE_LOADING": "LAZY",
    "CUDF_SPILL": "off",
    "PYTHONHASHSEED": "0",
}
"""Choices that libraries make by free memory, and others that differ from run to run."""

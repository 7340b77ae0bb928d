# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A GPU and its neighbour, real or simulated, as the benchmarks of neighbours use them.

The first device is the harvester's, the second the neighbour. Places are "device", "neighbor" and
"host". The simulated pair shows that a script runs, and says nothing of hardware.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import rmm_uvm
from rmm_uvm.residency import Budget

MIB = 1 << 20
SIMULATED_MEMORY = "256MiB"
DIRECT, PREFETCH = "direct", "prefetch"


def pool(driver: Any, budget: Budget | None, pool_bytes: int) -> Any:
    """Return a managed pool of a fixed size whose memory moves only as it is told."""
    return rmm_uvm.managed_pool(
        driver=driver,
        initial_pool_size=pool_bytes,
        maximum_pool_size=pool_bytes,
        device_budget=budget,
        prefetch="never" if budget is None else "auto",
    )


class GpuPair:
    """The first two GPUs. Memory is moved by the calls of the kernel driver themselves."""

    simulated = False
    stages = ""  # why memory cannot go from the host to the neighbour; empty where it can

    def __init__(self) -> None:
        self.device, self.neighbor = rmm_uvm.cuda_driver(0), rmm_uvm.cuda_driver(1)
        access = self.device.open_neighbor(1)
        if not access:
            raise SystemExit(f"GPU 1 is no neighbour of GPU 0: {access.reason}")
        both = (self.device.info.direct_migration, self.neighbor.info.direct_migration)
        self.ways = (PREFETCH, DIRECT) if all(both) else (PREFETCH,)
        self._regions: dict[int, Any] = {}

    def region(self, nbytes: int, _place: str) -> int:
        """Return managed memory with contents, on the device."""
        import cupy

        mr = rmm_uvm.mr.ManagedMemoryResource(self.device, prefetch="never")
        address = int(mr.allocate(nbytes))
        memory = cupy.cuda.UnownedMemory(address, nbytes, mr)
        words = cupy.ndarray(nbytes // 8, cupy.uint64, cupy.cuda.MemoryPointer(memory, 0))
        self.move(address, nbytes, "device", PREFETCH)
        words[:] = cupy.arange(nbytes // 8, dtype=cupy.uint64)
        self._regions[address] = (mr, words, nbytes)
        return address

    def write(self, address: int, nbytes: int) -> None:
        """Write memory of a pool: pages that nobody wrote move without a copy."""
        import cupy

        cupy.cuda.runtime.memset(address, 0x5A, nbytes)

    def is_intact(self, address: int) -> bool:
        """Tell whether a region has its contents."""
        import cupy

        _, words, nbytes = self._regions[address]
        return bool((words == cupy.arange(nbytes // 8, dtype=cupy.uint64)).all())

    def free(self, address: int) -> None:
        """Give a region back."""
        mr, _, nbytes = self._regions.pop(address)
        mr.deallocate(address, nbytes)

    def move(self, address: int, nbytes: int, place: str, way: str) -> None:
        """Move a piece; by `DIRECT` it has arrived then."""
        driver = self.neighbor if place == "neighbor" else self.device
        call = driver.migrate if way == DIRECT else driver.prefetch
        call(address, nbytes, "host" if place == "host" else "device")

    def wait(self) -> None:
        """Wait for all that was asked of both devices."""
        import cupy

        for ordinal in (0, 1):
            with cupy.cuda.Device(ordinal):
                cupy.cuda.runtime.deviceSynchronize()

    def now(self) -> float:
        """Return seconds of a clock."""
        return time.perf_counter()

    def neighbor_free_bytes(self) -> int:
        """Return what the neighbour's driver tells."""
        return int(self.neighbor.memory()[0])


class SimulatedPair:
    """Two GPUs of a simulated node: memory goes to the neighbour by way of a budget only."""

    simulated = True
    ways = (PREFETCH,)
    stages = "a program of a simulated node does not send host memory to another GPU"

    def __init__(self) -> None:
        self.node = rmm_uvm.simulated_node(2, SIMULATED_MEMORY)
        self.device, self.neighbor = self.node.devices
        self._pools: dict[int, tuple[Any, int]] = {}

    def region(self, nbytes: int, place: str) -> int:
        """Return managed memory on the device, which leaves to one place."""
        beside = [1] if place == "neighbor" else None
        budget = Budget(2 * nbytes, neighbors=beside, board=None, background=False)
        mr = pool(self.device, budget, nbytes)
        address = int(mr.allocate(nbytes))
        self.device.touch(address, nbytes, write=True)
        self._pools[address] = (mr, nbytes)
        return address

    def write(self, address: int, nbytes: int) -> None:
        """Write memory of a pool."""
        self.device.touch(address, nbytes, write=True)

    def is_intact(self, _address: int) -> bool:
        """Tell that contents are as they were: the simulated pair has none."""
        return True

    def free(self, address: int) -> None:
        """Give a region back."""
        mr, nbytes = self._pools.pop(address)
        mr.deallocate(address, nbytes)

    def move(self, address: int, nbytes: int, place: str, _way: str) -> None:
        """Move a piece."""
        [mr] = [mr for at, (mr, whole) in self._pools.items() if at <= address < at + whole]
        prefetcher = mr.managed_mr.residency
        if place == "device":
            prefetcher.bring(address, nbytes)
        else:
            prefetcher.evict(address, nbytes)

    def wait(self) -> None:
        """Wait for all that was asked of both devices."""
        self.node.synchronize()

    def now(self) -> float:
        """Return modelled seconds."""
        return self.node.synchronize() / 1e9

    def neighbor_free_bytes(self) -> int:
        """Return what the neighbour's driver tells."""
        return int(self.neighbor.memory()[0])


def make_pair(*, simulated: bool) -> Any:
    """Return the pair that is asked for."""
    return SimulatedPair() if simulated else GpuPair()


def timed(pair: Any, what: Callable[[], object]) -> float:
    """Return the seconds until all of it has arrived."""
    pair.wait()
    begin = pair.now()
    what()
    pair.wait()
    return float(pair.now() - begin)


def in_pieces(
    pair: Any, address: int, nbytes: int, piece_bytes: int, place: str, way: str
) -> Callable[[], None]:
    """Return what moves a region, a piece after the other."""

    def run() -> None:
        for offset in range(0, nbytes, piece_bytes):
            pair.move(address + offset, min(piece_bytes, nbytes - offset), place, way)

    return run


def at_once(jobs: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Return what does several jobs, each in a thread; the first error is raised."""

    def run() -> None:
        errors: list[BaseException] = []

        def guarded(job: Callable[[], None]) -> None:
            try:
                job()
            except BaseException as error:  # raised again below
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    return run

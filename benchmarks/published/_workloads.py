# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Shared by the tables: machines for smaller sizes, time spans, page lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rmm_uvm.simulator import Access, DriverSettings, Machine, Simulator, recorded, sequential

PAGE_BYTES = 4096
BLOCK_BYTES = 2 << 20
_SECTOR_BYTES = 32
GB = 10**9
GIB = 1 << 30
MIB = 1 << 20
Pages = npt.NDArray[np.int64]
_PER_CALL = (
    *("call_ns", "deferred_call_ns", "prefetch_ramp_ns", "prefetch_ramp_blocks"),
    *("allocate_managed_ns", "free_managed_ns", "allocate_device_ns", "free_device_ns"),
    "launch_ns",
)


def scaled(machine: Machine, scale: int) -> Machine:
    """Return the machine for sizes that are `scale` times smaller.

    Bytes and pages shrink with the sizes, the number of calls does not: what a call takes shrinks
    here, so that every part of the time is `scale` times smaller.
    """
    return machine.replace(**{name: getattr(machine, name) / scale for name in _PER_CALL})


def sector_a_page(machine: Machine) -> Machine:
    """Return the machine for kernels that access a few bytes of each page.

    Accesses count in pages; memory gives sectors of 32 bytes, in as much less time.
    """
    rate = machine.memory_bytes_per_ns * PAGE_BYTES / _SECTOR_BYTES
    return machine.replace(memory_bytes_per_ns=rate)


def whole_blocks(nbytes: float) -> int:
    """Return `nbytes` rounded to whole blocks of 2 MiB, at least one."""
    return max(round(nbytes / BLOCK_BYTES), 1) * BLOCK_BYTES


def simulator_with(
    machine: Machine, device_bytes: float, driver: DriverSettings | None = None
) -> Simulator:
    """Return a simulator with `device_bytes` for managed memory, to the page.

    A simulated GPU has whole blocks; what is too much is taken away as cudaMalloc memory.
    """
    pages_bytes = int(device_bytes) // PAGE_BYTES * PAGE_BYTES
    total_bytes = -(-pages_bytes // BLOCK_BYTES) * BLOCK_BYTES
    simulator = Simulator(machine, device_bytes=total_bytes, driver=driver)
    if total_bytes > pages_bytes:
        simulator.allocate_device(total_bytes - pages_bytes)
    return simulator


def seconds_of(simulator: Simulator, work: Callable[[], object]) -> float:
    """Return the modelled time until `work` is done on the device as well."""
    simulator.synchronize()
    begin = simulator.seconds
    work()
    simulator.synchronize()
    return simulator.seconds - begin


def read(address: int, nbytes: int) -> Access:
    """Return a read of all of a buffer, in order."""
    return Access(address, nbytes, pattern=sequential(), write=False)


def written(address: int, nbytes: int) -> Access:
    """Return a write of all of a buffer, in order."""
    return Access(address, nbytes, pattern=sequential(), write=True)


def at_pages(address: int, nbytes: int, pages: Pages | Sequence[int], *, write: bool) -> Access:
    """Return accesses of a list of pages of a buffer, in that order."""
    return Access(address, nbytes, pattern=recorded(np.asarray(pages).tolist()), write=write)


def parts(nbytes: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield offset and size of `count` parts of a buffer, each of whole pages."""
    pages = -(-nbytes // PAGE_BYTES)
    for number in range(count):
        begin, end = pages * number // count, pages * (number + 1) // count
        if end > begin:
            yield begin * PAGE_BYTES, min(end * PAGE_BYTES, nbytes) - begin * PAGE_BYTES

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The memory of a table's rows: whole blocks of a managed pool, and a tensor over them.

Covers allocating, and moving blocks between device and host. Does not cover which blocks; see
`rmm_uvm.torch.embeddings.hot_blocks`.

What is on the host is mapped by `cuMemAdvise` with "accessed by". Memory that only belongs to the
host is mapped page by page as kernels fault; this maps what is there at once, and keeps it mapped
when it is evicted.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import rmm
import torch

from rmm_uvm._lib.current_device import current_device
from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.pool import hints
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.support.units import VA_BLOCK_BYTES

__all__ = ["RowMemory", "map_through_link", "unmap"]


def map_through_link(driver: UvmDriver, address: int, nbytes: int) -> str:
    """Map memory for kernels of the driver's GPU; return why that was refused, empty if it was not.

    Parameters
    ----------
    driver : UvmDriver
        Of a GPU.
    address, nbytes : int
        Whole blocks of managed memory.
    """
    from cuda.bindings import driver as cuda

    return _advise(driver, address, nbytes, cuda.CUmem_advise.CU_MEM_ADVISE_SET_ACCESSED_BY)


def unmap(driver: UvmDriver, address: int, nbytes: int) -> str:
    """Take it back: a pool hands the addresses out again. Parameters and result as above."""
    from cuda.bindings import driver as cuda

    return _advise(driver, address, nbytes, cuda.CUmem_advise.CU_MEM_ADVISE_UNSET_ACCESSED_BY)


def _advise(driver: UvmDriver, address: int, nbytes: int, advice: Any) -> str:
    from cuda.bindings import driver as cuda

    location = cuda.CUmemLocation()
    location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = driver.info.device_id
    with current_device(driver):
        (result,) = cuda.cuMemAdvise(address, nbytes, advice, location)
    if result == cuda.CUresult.CUDA_SUCCESS:
        return ""
    return f"cuMemAdvise: {result.name} for a mapping of {nbytes} bytes"


_CHUNK_BLOCKS = 32  # most that is written at once


class RowMemory:
    """Blocks of 2 MiB of a managed pool that hold the rows of one table, and nothing else.

    Parameters
    ----------
    num_rows, row_items : int
        Shape of the table, both > 0.
    dtype : torch.dtype
        Of its items.
    mr : rmm.mr.DeviceMemoryResource
        A managed pool. Where its device is simulated, the rows are in host memory of torch, and
        the pool's memory stands for them: it is moved and accessed in their place.

    Raises
    ------
    ConfigurationError
        If `mr` is no managed pool.
    AvailabilityError
        If the pool is a GPU's and torch sees no GPU.
    MemoryError
        If the pool cannot hold the table.

    Notes
    -----
    Not thread-safe. The memory goes back when neither this object nor the tensor is used any more;
    work that uses it has to be ordered before the default stream by then, as for all of RMM.
    """

    def __init__(
        self, num_rows: int, row_items: int, dtype: torch.dtype, mr: rmm.mr.DeviceMemoryResource
    ) -> None:
        (self.pool,) = managed_pools(mr)
        self.mr = mr
        info = self.driver.info
        self.simulated = bool(info.simulated)
        if not self.simulated and not torch.cuda.is_available():
            raise AvailabilityError(
                "the pool is a GPU's, and torch sees no GPU: install a torch with CUDA, or give "
                'driver="simulated"'
            )
        self.device = (
            torch.device("cpu") if self.simulated else torch.device(f"cuda:{info.device_id}")
        )
        self.shape, self.dtype = (num_rows, row_items), dtype
        self.row_bytes = row_items * dtype.itemsize
        self.nbytes = num_rows * self.row_bytes
        self.blocks = -(-self.nbytes // VA_BLOCK_BYTES)
        prefetcher = self.pool.managed_mr.residency
        too_large = _requests_too_large(prefetcher)
        with current_device(self.driver):
            # A block more: the table begins where a block does, and shares none with others.
            buffer = rmm.DeviceBuffer(size=(self.blocks + 1) * VA_BLOCK_BYTES, mr=mr)
        if too_large == 0 and _requests_too_large(prefetcher):
            # It is larger than the budget on purpose, and not left to page faults.
            prefetcher.too_large_told = True
        self.address = -(-buffer.ptr // VA_BLOCK_BYTES) * VA_BLOCK_BYTES
        self.advice_refused = ""
        self.pinned: set[int] = set()
        release = weakref.finalize(self, _release, prefetcher, self.address, self.pinned, buffer)
        release.atexit = False  # the process gives everything back, and CUDA may have ended
        self._mapped = False

    @property
    def driver(self) -> UvmDriver:
        """The driver of the pool."""
        return self.pool.driver

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The bytes of the rows, for torch."""
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }

    def tensor(self) -> torch.Tensor:
        """Return a tensor over the rows, uninitialised; to be called once.

        It keeps this object alive, not the reverse: torch's reference cannot be seen by the
        collector, and a cycle would never be freed.
        """
        if self.simulated:
            return torch.empty(self.shape, dtype=self.dtype, device="cpu")
        return torch.as_tensor(self, device=self.device).view(self.dtype).view(self.shape)

    def chunks(self) -> Iterator[slice]:
        """Yield the rows piece by piece, each on the device while it is written, then on the host.

        For filling a table that is larger than the device: no kernel faults.
        """
        num_rows = self.shape[0]
        kept = self.pool.managed_mr.residency.residency()
        budget_blocks = self.blocks if kept is None else kept["budget_bytes"] // VA_BLOCK_BYTES
        chunk_blocks = max(min(_CHUNK_BLOCKS, budget_blocks // 4), 1)
        # Multiples of 16 items: torch's random numbers on the host are then those of one call.
        step = max(chunk_blocks * VA_BLOCK_BYTES // self.row_bytes // 16 * 16, 16)
        done = 0  # blocks that are complete
        for first in range(0, num_rows, step):
            last = min(first + step, num_rows)
            reach = -(-last * self.row_bytes // VA_BLOCK_BYTES)
            begin = first * self.row_bytes // VA_BLOCK_BYTES
            hints.prefetch(self._bytes_of(begin, reach - begin), mr=self.mr, stream=self._stream())
            yield slice(first, last)
            if self.simulated:
                begin_byte, end_byte = first * self.row_bytes, last * self.row_bytes
                self.driver.touch(  # type: ignore[attr-defined]
                    self.address + begin_byte, end_byte - begin_byte, write=True
                )
            complete = self.blocks if last == num_rows else last * self.row_bytes // VA_BLOCK_BYTES
            for block, count in runs_of(set(range(done, complete)) - self.pinned):
                hints.evict(self._bytes_of(block, count), mr=self.mr, stream=self._stream())
            done = complete

    def settle(self) -> None:
        """Say that the whole table belongs to the host, and is read through a mapping there."""
        self._advise(0, self.blocks, "host")
        if not self.simulated and not self._mapped:
            reason = map_through_link(self.driver, self.address, self.blocks * VA_BLOCK_BYTES)
            self.advice_refused = self.advice_refused or reason
            self._mapped = not reason
            if self._mapped:
                unmapping = weakref.finalize(
                    self, unmap, self.driver, self.address, self.blocks * VA_BLOCK_BYTES
                )
                unmapping.atexit = False

    def warm(self, block: int, count: int) -> None:
        """Bring blocks to the device, and keep them there."""
        self._advise(block, count, "none")
        where = self._bytes_of(block, count)
        hints.prefetch(where, mr=self.mr, stream=self._stream())
        self.pool.managed_mr.residency.pin(*where)
        self.pinned.update(range(block, block + count))

    def cool(self, block: int, count: int) -> None:
        """Send blocks to the host, where kernels use them through the link."""
        where = self._bytes_of(block, count)
        _unpin(self.pool.managed_mr.residency, self.address, self.pinned, block, count)
        self._advise(block, count, "host")
        hints.evict(where, mr=self.mr, stream=self._stream())

    def used(self, rows: torch.Tensor) -> None:
        """Access, on a simulated device, the pages of rows as a kernel that reads them would."""
        if not self.simulated:
            return
        page_bytes = 4096
        first = rows.reshape(-1).long().mul(self.row_bytes).div(page_bytes, rounding_mode="floor")
        reach = -(-self.row_bytes // page_bytes)
        for page, count in runs_of(set(first.unique().tolist())):
            nbytes = (count + reach - 1) * page_bytes
            begin = self.address + page * page_bytes
            end = min(begin + nbytes, self.address + self.blocks * VA_BLOCK_BYTES)
            self.driver.touch(begin, end - begin)  # type: ignore[attr-defined]

    def _bytes_of(self, block: int, count: int) -> tuple[int, int]:
        return self.address + block * VA_BLOCK_BYTES, count * VA_BLOCK_BYTES

    def _advise(self, block: int, count: int, preferred: Any) -> None:
        came = hints.advise(self._bytes_of(block, count), preferred=preferred, mr=self.mr)
        self.advice_refused = self.advice_refused or came.reason

    def _stream(self) -> Any:
        return None if self.simulated else torch.cuda.current_stream(self.device)


def runs_of(numbers: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of consecutive numbers, as their first and their length.

    Examples
    --------
    >>> list(runs_of({7, 2, 3, 4}))
    [(2, 3), (7, 1)]
    """
    first = length = 0
    for number in sorted(numbers):
        if length and number == first + length:
            length += 1
            continue
        if length:
            yield first, length
        first, length = number, 1
    if length:
        yield first, length


def _requests_too_large(prefetcher: ManagedResidency) -> int:
    kept = prefetcher.residency()
    return 0 if kept is None else kept["too_large"]


def _unpin(
    prefetcher: ManagedResidency, address: int, pinned: set[int], block: int, count: int
) -> None:
    """Let go of those of the blocks that are pinned."""
    for first, length in runs_of(pinned & set(range(block, block + count))):
        prefetcher.unpin(address + first * VA_BLOCK_BYTES, length * VA_BLOCK_BYTES)
        pinned.difference_update(range(first, first + length))


def _release(prefetcher: ManagedResidency, address: int, pinned: set[int], buffer: object) -> None:
    """Let go of all blocks; the buffer, the last to refer to the memory, is freed on return."""
    if pinned:
        _unpin(prefetcher, address, pinned, 0, max(pinned) + 1)
    del buffer

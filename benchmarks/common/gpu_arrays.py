# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of a managed pool on a GPU, with contents that every read checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SOURCE = r"""
typedef unsigned long long u64;
extern "C" __global__ void fill(u64* words, u64 count, u64 value)
{
  u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += stride)
    words[i] = value + i;
}
extern "C" __global__ void work(
  u64* words, u64 count, u64 value, u64 step, u64 passes, u64* wrong)
{
  u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += stride) {
    u64 seen = words[i];
    if (seen != value + i) atomicAdd(wrong, 1ULL);
    u64 kept = seen;
    for (u64 pass = 0; pass < passes; ++pass) seen = seen * 6364136223846793005ULL + pass;
    if (step != 0 || seen == 1) words[i] = kept + step;
  }
}
"""
GRID = ((2048,), (256,))  # blocks, and threads of each


def kernels() -> tuple[Any, Any]:
    """Return the kernels that fill words with a value and their number, and that look at them."""
    import cupy

    module = cupy.RawModule(code=_SOURCE)
    return module.get_function("fill"), module.get_function("work")


class GpuArrays:
    """Memory that programs compute with; see `Arrays` of `residency/programs.py`.

    Parameters
    ----------
    mr : UvmResourceAdaptor
        Whence it comes.
    passes : int
        Multiplications on each word that is read: how much is computed for a byte.
    touch : callable, optional
        Told of address, bytes and allocation before each use; by default the budget of `mr`.
    """

    def __init__(
        self, mr: Any, passes: int = 0, touch: Callable[[int, int, int], object] | None = None
    ) -> None:
        import cupy

        self._u64 = cupy.uint64
        self._fill, self._work = kernels()
        self._wrong = cupy.zeros(1, dtype=cupy.uint64)
        self._synchronize = cupy.cuda.runtime.deviceSynchronize
        self._wait = cupy.cuda.Stream.null.synchronize
        self._mr, self._passes = mr, passes
        self._touch = mr.managed_mr.residency.touch if touch is None else touch
        self._held: dict[int, tuple[int, int]] = {}
        self._made = 0

    def make(self, nbytes: int) -> int:
        """Allocate and write."""
        address = int(self._mr.allocate(nbytes))
        self._made += 1
        value = self._made << 32
        self._held[address] = (nbytes, value)
        words = (self._u64(address), self._u64(nbytes // 8), self._u64(value))
        self._fill(*GRID, words)
        return address

    def read(self, handle: int, first_byte: int = 0, nbytes: int | None = None) -> None:
        """Announce, then read all of it, or a part; bounds of parts are whole words."""
        self._use(handle, 0, first_byte, nbytes)

    def write(self, handle: int) -> None:
        """Announce, then read and write all of it."""
        self._use(handle, 1)

    def free(self, handle: int) -> None:
        """Free."""
        self._mr.deallocate(handle, self._held.pop(handle)[0])

    def held(self) -> list[int]:
        """Return what is allocated and not freed."""
        return list(self._held)

    def compute(self, handle: int) -> None:
        """Read all of it without announcing it."""
        nbytes, value = self._held[handle]
        u64 = self._u64
        words = (u64(handle), u64(nbytes // 8), u64(value), u64(0), u64(self._passes))
        self._work(*GRID, (*words, self._wrong))

    def wait(self) -> None:
        """Wait for the stream that arrays are computed in."""
        self._wait()

    def finish(self) -> int:
        """Wait for the device; return how many words were ever wrong."""
        self._synchronize()
        return int(self._wrong[0])

    def _use(self, address: int, step: int, first_byte: int = 0, nbytes: int | None = None) -> None:
        all_bytes, value = self._held[address]
        nbytes = nbytes or all_bytes - first_byte
        first = address + first_byte
        self._touch(first, nbytes, address)
        u64 = self._u64
        there = value + first_byte // 8
        words = (u64(first), u64(nbytes // 8), u64(there), u64(step), u64(self._passes))
        self._work(*GRID, (*words, self._wrong))
        self._held[address] = (all_bytes, value + step)

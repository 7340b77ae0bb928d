# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Device memory with checked contents: every buffer is filled with a pattern of its own."""

from __future__ import annotations

import dataclasses

import cupy
import rmm
from rmm.pylibrmm.stream import Stream

_FILL = cupy.RawKernel(
    """
extern "C" __global__ void fill(unsigned char* bytes, unsigned long long count, unsigned seed) {
  for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count;
       i += (unsigned long long)gridDim.x * blockDim.x)
    bytes[i] = (unsigned char)((i * 2654435761ull + seed) >> 7);
}""",
    "fill",
)
_COUNT_WRONG = cupy.RawKernel(
    """
extern "C" __global__ void count_wrong(const unsigned char* bytes, unsigned long long count,
                                       unsigned seed, unsigned long long* wrong) {
  unsigned long long bad = 0;
  for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count;
       i += (unsigned long long)gridDim.x * blockDim.x)
    bad += bytes[i] != (unsigned char)((i * 2654435761ull + seed) >> 7);
  if (bad) atomicAdd(wrong, bad);
}""",
    "count_wrong",
)
_GRID, _BLOCK = (256,), (256,)


@dataclasses.dataclass
class PatternBuffer:
    """A buffer allocated and filled in one stream's order."""

    address: int
    nbytes: int
    seed: int
    stream: cupy.cuda.Stream

    @classmethod
    def make(
        cls, mr: rmm.mr.DeviceMemoryResource, nbytes: int, seed: int, stream: cupy.cuda.Stream
    ) -> PatternBuffer:
        buffer = cls(mr.allocate(nbytes, Stream(stream)), nbytes, seed, stream)
        with stream:
            _FILL(_GRID, _BLOCK, (buffer.address, cupy.uint64(nbytes), cupy.uint32(seed)))
        return buffer

    def count_wrong(self, wrong: cupy.ndarray) -> None:
        """Add the number of bytes that are not the pattern's, in the buffer's stream."""
        with self.stream:
            _COUNT_WRONG(
                _GRID,
                _BLOCK,
                (self.address, cupy.uint64(self.nbytes), cupy.uint32(self.seed), wrong.data.ptr),
            )

    def free(self, mr: rmm.mr.DeviceMemoryResource) -> None:
        mr.deallocate(self.address, self.nbytes, Stream(self.stream))

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A kernel that does little but fault: it streams over managed memory that lies on the host."""

from __future__ import annotations

import ctypes
import time

import cupy
import numpy as np

PAGE_BYTES = 4096

_ADD_ONE = cupy.RawKernel(
    """
extern "C" __global__ void add_one(unsigned long long* words, unsigned long long count) {
  for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count;
       i += (unsigned long long)gridDim.x * blockDim.x)
    words[i] += 1;
}""",
    "add_one",
)


def stream_over(address: int, nbytes: int) -> float:
    """Let a kernel read and write every word of a range; return the seconds it took."""
    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    _ADD_ONE((1024,), (256,), (address, cupy.uint64(nbytes // 8)))
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - begin


def touch_by_cpu(address: int, nbytes: int) -> None:
    """Let the CPU write to every page of a range, which brings the pages to the host."""
    bytes_ = np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype=np.uint8)
    bytes_[::PAGE_BYTES] += 1

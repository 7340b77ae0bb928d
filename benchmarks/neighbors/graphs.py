# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Graph programs over managed memory on a GPU: page rank and breadth first over a random graph.

The graph is a CSR matrix in parts of vertices, each one allocation: where its vertices' edges
begin, then whom they lead to. Ranks are whole numbers, so that results are equal to the bit in
every way of keeping memory.
"""

from __future__ import annotations

import hashlib
from typing import Any

MIB = 1 << 20
PART_VERTICES = 1 << 20
_SOURCE = r"""
typedef unsigned long long u64;
typedef unsigned int u32;
__device__ u64 mixed(u64 x)
{
  x ^= x >> 33; x *= 0xff51afd7ed558ccdULL; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}
extern "C" __global__ void degrees(u32* found, u32 count, u64 first)
{
  u32 v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < count) found[v] = (u32)(mixed(first + v) % 63);
}
extern "C" __global__ void edges(u32* to, u32 count, u64 first, u32 vertices)
{
  u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 e = blockIdx.x * (u64)blockDim.x + threadIdx.x; e < count; e += stride)
    to[e] = (u32)(mixed((first << 8) + e) % vertices);
}
extern "C" __global__ void rank(
  u32 const* begin, u32 const* to, u32 count, u64 const* before, u64* after)
{
  u32 v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= count) return;
  u64 sum = v + 1;
  for (u32 e = begin[v]; e < begin[v + 1]; ++e) sum += before[to[e]] >> 5;
  after[v] = sum;
}
extern "C" __global__ void level(
  u32 const* begin, u32 const* to, u32 count, u32 now, u32 const* mine, u32* all, u32* reached)
{
  u32 v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= count || mine[v] != now) return;
  for (u32 e = begin[v]; e < begin[v + 1]; ++e)
    if (atomicCAS(&all[to[e]], 0xffffffffU, now + 1) == 0xffffffffU) atomicAdd(reached, 1U);
}
"""
_THREADS = 256


class Graph:
    """A random graph in managed memory.

    Parameters
    ----------
    mr : UvmResourceAdaptor
        Whence it comes; uses are announced to its prefetcher.
    parts : int
        Of a mebi of vertices with 32 edges each: 132 MiB.
    """

    def __init__(self, mr: Any, parts: int) -> None:
        import cupy

        self._cupy, self._mr = cupy, mr
        self._touch_all = mr.managed_mr.residency.touch_all
        kernels = cupy.RawModule(code=_SOURCE)
        self._kernel = {
            name: kernels.get_function(name) for name in ("degrees", "edges", "rank", "level")
        }
        self.vertices = parts * PART_VERTICES
        self._held: list[tuple[int, int]] = []
        self._ranks = [self._made(self.vertices, cupy.uint64) for _ in range(2)]
        self._levels = self._made(self.vertices, cupy.uint32)
        self._parts = [self._part(number) for number in range(parts)]

    def _made(self, count: int, kind: Any) -> Any:
        """Return an array of the pool."""
        cupy = self._cupy
        nbytes = count * cupy.dtype(kind).itemsize
        address = int(self._mr.allocate(nbytes))
        self._held.append((address, nbytes))
        memory = cupy.cuda.UnownedMemory(address, nbytes, self._mr)
        return cupy.ndarray(count, kind, cupy.cuda.MemoryPointer(memory, 0))

    def _part(self, number: int) -> tuple[Any, Any]:
        """Return where edges begin, and whom they lead to: two views of one allocation."""
        cupy = self._cupy
        first = number * PART_VERTICES
        blocks = (-(-PART_VERTICES // _THREADS),)
        found = cupy.empty(PART_VERTICES, cupy.uint32)
        count = cupy.uint32(PART_VERTICES)
        self._kernel["degrees"](blocks, (_THREADS,), (found, count, cupy.uint64(first)))
        edges = int(found.sum())
        both = self._made(PART_VERTICES + 1 + edges, cupy.uint32)
        begin, to = both[: PART_VERTICES + 1], both[PART_VERTICES + 1 :]
        begin[0] = 0
        cupy.cumsum(found, dtype=cupy.uint32, out=begin[1:])
        numbers = (cupy.uint32(edges), cupy.uint64(first), cupy.uint32(self.vertices))
        self._kernel["edges"]((2048,), (_THREADS,), (to, *numbers))
        return begin, to

    def _announce(self, *arrays: Any) -> None:
        self._touch_all([(one.data.ptr, one.nbytes, one.data.ptr) for one in arrays])

    def page_rank(self, rounds: int) -> None:
        """Go over all edges in their order, so many times."""
        cupy = self._cupy
        self._announce(self._ranks[0])
        self._ranks[0][:] = 1 << 20
        blocks = (-(-PART_VERTICES // _THREADS),)
        for _ in range(rounds):
            before, after = self._ranks
            for number, (begin, to) in enumerate(self._parts):
                first = number * PART_VERTICES
                mine = after[first : first + PART_VERTICES]
                self._announce(begin, to, before, mine)
                arguments = (begin, to, cupy.uint32(PART_VERTICES), before, mine)
                self._kernel["rank"](blocks, (_THREADS,), arguments)
            self._ranks.reverse()

    def breadth_first(self, root: int) -> int:
        """Give each vertex its distance from a root; return how many levels there are.

        Only parts with vertices of the frontier are gone over.
        """
        cupy = self._cupy
        self._announce(self._levels)
        self._levels[:] = 0xFFFFFFFF
        self._levels[root] = 0
        reached = cupy.ones(1, cupy.uint32)
        blocks, now = (-(-PART_VERTICES // _THREADS),), 0
        while int(reached[0]):
            reached[:] = 0
            frontier = (self._levels.reshape(len(self._parts), -1) == now).any(axis=1).get()
            for number, (begin, to) in enumerate(self._parts):
                if not frontier[number]:
                    continue
                first = number * PART_VERTICES
                mine = self._levels[first : first + PART_VERTICES]
                self._announce(begin, to, self._levels)
                numbers = (cupy.uint32(PART_VERTICES), cupy.uint32(now))
                arguments = (begin, to, *numbers, mine, self._levels, reached)
                self._kernel["level"](blocks, (_THREADS,), arguments)
            now += 1
        return now

    def synchronize(self) -> None:
        """Wait for the device."""
        self._cupy.cuda.runtime.deviceSynchronize()

    def digest(self) -> str:
        """Return a digest of ranks and distances."""
        found = hashlib.sha256()
        for array in (self._ranks[0], self._levels):
            self._announce(array)
            found.update(array.get().tobytes())
        return found.hexdigest()[:16]

    def free(self) -> None:
        """Give all memory back."""
        self.synchronize()
        for address, nbytes in self._held:
            self._mr.deallocate(address, nbytes)
        self._held.clear()

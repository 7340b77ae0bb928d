# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch's CUDA side without a GPU: as much of its caching allocator as ours has to do with.

Segments come from the functions that the real one would call, by their names in the shared object,
and whoever is registered is told of allocations and frees as there: an allocation after its block
was chosen and before the caller has it, a free before the block can be chosen again.

As there, a pool that is routed counts as one under capture: no free segment of it goes, nor of
torch's own, and what was freed while other streams may use it waits. Those uses are forgotten then.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

MIB = 1 << 20
STREAM = 0


@dataclass
class Segment:
    """A segment and its blocks: bytes and whether each is live, by address."""

    address: int
    nbytes: int
    blocks: dict[int, tuple[int, bool]] = field(default_factory=dict)
    pool: int = 0


@dataclass
class FakeTorchCuda:
    """The allocator of one device; `install` puts it in the place of torch's."""

    device: int = 0
    routed_pool: int | None = None
    uses: dict[int, int] = field(default_factory=dict)  # of pools
    told: bool = False
    segments: dict[int, Segment] = field(default_factory=dict)
    released: int = 0
    native_allocations: int = 0
    emptied: int = 0  # how often torch's own memory was given back
    on_other_streams: set[int] = field(default_factory=set)  # live blocks, by address
    deferred: list[int] = field(default_factory=list)
    unsafe: set[int] = field(default_factory=set)  # freed, and in use on the device
    mistakes: list[str] = field(default_factory=list)  # that end the process, or lose contents
    before_telling: Callable[[], object] = bool  # written in C, and false

    @property
    def routed(self) -> bool:
        """Whether allocations are those of a pool."""
        return self.routed_pool is not None

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Let torch look as if it saw a GPU."""
        from torch.cuda import _gpu_trace

        self._trace = _gpu_trace
        fake = self

        class Allocator:
            def __init__(self, path: str, allocate: str, deallocate: str) -> None:
                library = ctypes.CDLL(path)
                fake._allocate = getattr(library, allocate)
                fake._allocate.restype = ctypes.c_void_p
                fake._allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
                fake._deallocate = getattr(library, deallocate)
                fake._deallocate.restype = None
                fake._deallocate.argtypes = [
                    ctypes.c_void_p,
                    ctypes.c_ssize_t,
                    ctypes.c_int,
                    ctypes.c_void_p,
                ]

            def allocator(self) -> object:
                return self

        class Pool:
            def __init__(self, allocator: object) -> None:
                assert isinstance(allocator, Allocator)
                self.id = len(fake.uses) + 1
                fake.uses[self.id] = 1

            def __del__(self) -> None:
                fake.uses[self.id] -= 1
                if fake.routed:
                    fake.mistakes.append("a pool ended while one was routed")
                    return
                fake._look_at_deferred()
                fake._give_back(self.id)

        def begin(device: int, pool: int) -> None:
            assert device == fake.device
            assert not fake.routed
            assert fake.uses[pool] > 0
            fake.uses[pool] += 1
            fake.routed_pool = pool

        def end(_device: int, pool: int) -> None:
            assert fake.routed_pool == pool
            fake.routed_pool = None

        def release(_device: int, pool: int) -> None:
            fake.uses[pool] -= 1
            fake.released += 1

        patch.setattr("rmm_uvm.torch.routing._allocators", [])
        patch.setattr(torch.cuda, "is_available", lambda: True)
        # A build for CUDA asks the GPU that it is told of, in each step of Adam.
        patch.setattr(torch.accelerator, "current_accelerator", lambda **_: None)
        patch.setattr(torch.cuda, "init", lambda: None)
        patch.setattr(torch.cuda, "current_device", lambda: self.device)
        patch.setattr(torch.cuda, "current_stream", lambda: torch.cuda.ExternalStream)
        patch.setattr(torch.cuda.ExternalStream, "cuda_stream", STREAM, raising=False)
        patch.setattr(torch.cuda.memory, "get_allocator_backend", lambda: "native")
        patch.setattr(torch.cuda.memory, "CUDAPluggableAllocator", Allocator)
        patch.setattr(torch.cuda, "MemPool", Pool)
        patch.setattr(torch.cuda, "device", contextlib.nullcontext)
        patch.setattr(torch._C, "_cuda_beginAllocateToPool", begin)
        patch.setattr(torch._C, "_cuda_endAllocateToPool", end)
        patch.setattr(torch._C, "_cuda_releasePool", release, raising=False)
        patch.setattr(torch._C, "_activate_gpu_trace", self._tell)
        patch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda _: STREAM, raising=False)
        patch.setattr(torch._C, "_cuda_emptyCache", self.empty_cache, raising=False)
        patch.setattr(torch._C, "_accelerator_isAllocatorInitialized", lambda: True)
        patch.setattr(torch._C, "_accelerator_emptyCache", self.empty_cache)
        patch.setattr(torch.cuda.memory, "is_initialized", lambda: True)
        patch.setattr(torch.cuda, "memory_snapshot", self.snapshot)
        patch.setattr(torch.cuda, "memory_stats_as_nested_dict", self._statistics)
        patch.setattr(torch.cuda, "synchronize", self._synchronize)
        patch.setattr(torch.cuda, "caching_allocator_alloc", self._allocate_raw)
        patch.setattr(torch.cuda, "caching_allocator_delete", lambda _: None)

    def _tell(self) -> None:
        self.told = True

    def allocate(self, nbytes: int) -> int:
        """Hand out memory: the least free block that is large enough, or a new segment."""
        assert self.routed_pool is not None
        rounded = -(-nbytes // 512) * 512
        small = rounded <= MIB
        free = [
            (size, address, segment)
            for segment in self.segments.values()
            if segment.pool == self.routed_pool
            if (segment.nbytes == 2 * MIB) == small
            for address, (size, live) in segment.blocks.items()
            if not live and size >= rounded
        ]
        if free:
            size, address, segment = min(free, key=lambda one: one[:2])
        else:
            segment = self._new_segment(rounded)
            address, size = segment.address, segment.nbytes
        if any(address <= one < address + rounded for one in self.unsafe):
            self.mistakes.append("memory that the device still used was handed out")
        segment.blocks[address] = (rounded, True)
        if size > rounded:
            segment.blocks[address + rounded] = (size - rounded, False)
        if self.told:
            tell = self._trace.MemoryAllocationCallbacks.fire_callbacks
            # Torch calls it from C++: a signal that came meanwhile is handled once Python runs.
            calls = (self.before_telling, functools.partial(tell, address))
            any(map(operator.call, calls))  # no bytecode of Python's lies between them
        return address

    def _new_segment(self, nbytes: int) -> Segment:
        if nbytes <= MIB:
            whole = 2 * MIB
        elif nbytes < 10 * MIB:
            whole = 20 * MIB
        else:
            whole = -(-nbytes // (2 * MIB)) * 2 * MIB
        address = self._allocate(whole, self.device, STREAM)
        if not address:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {nbytes}")
        assert self.routed_pool is not None
        segment = Segment(address, whole, {address: (whole, False)}, self.routed_pool)
        self.segments[address] = segment
        return segment

    def take_segment(self, nbytes: int, stream: int) -> int:
        """Take a segment as for a stream of which nothing else is kept here."""
        address: int = self._allocate(nbytes, self.device, stream)
        return address

    def give_segment_back(self, address: int, nbytes: int, stream: int) -> None:
        """Give back what `take_segment` took."""
        self._deallocate(address, nbytes, self.device, stream)

    def free(self, address: int) -> None:
        """Take memory back."""
        if self.told:
            self._trace.MemoryDeallocationCallbacks.fire_callbacks(address)
        if address in self.on_other_streams:
            self.on_other_streams.remove(address)
            self.deferred.append(address)  # if none is routed, an event: it waits all the same
        else:
            self._join(address)

    def _join(self, address: int) -> None:
        """Make a block free, and join it with its neighbours."""
        segment = next(one for one in self.segments.values() if address in one.blocks)
        size, live = segment.blocks[address]
        assert live
        segment.blocks[address] = (size, False)
        joined: dict[int, tuple[int, bool]] = {}
        for start in sorted(segment.blocks):
            size, live = segment.blocks[start]
            last = max(joined, default=None)
            if last is not None and not live and not joined[last][1]:
                joined[last] = (joined[last][0] + size, False)
            else:
                joined[start] = (size, live)
        segment.blocks = joined

    def record_stream(self, address: int) -> None:
        """Take note that another stream uses a live block, and has much to do before."""
        self.on_other_streams.add(address)

    def _statistics(self, device: int) -> dict[str, Any]:
        assert device == self.device
        live = {
            address: size
            for segment in self.segments.values()
            for address, (size, is_live) in segment.blocks.items()
            if is_live
        }
        waiting = sum(live[address] for address in self.deferred)
        active = sum(live.values())
        return {
            "active_bytes": {"all": {"current": active}},
            "allocated_bytes": {"all": {"current": active - waiting}},
        }

    def _synchronize(self, device: int) -> None:
        assert device == self.device
        self.unsafe.clear()

    def _look_at_deferred(self) -> None:
        """Take uses for over that began while a pool was routed."""
        assert not self.routed
        for address in self.deferred:
            self.unsafe.add(address)
            self._join(address)
        self.deferred.clear()

    def _allocate_raw(self, nbytes: int, device: int) -> int:
        assert device == self.device
        if self.routed:
            return self.allocate(nbytes)
        self._look_at_deferred()
        self.native_allocations += 1
        return 1 << 62

    def empty_cache(self) -> None:
        """Give back free segments: those of pools that are over, and if none is routed all."""
        if not self.routed:
            self._look_at_deferred()
            self.emptied += 1
        for pool in self.uses:
            self._give_back(pool)

    def _give_back(self, pool: int) -> None:
        """Give back the segments of a pool in which nothing is live, if it is over."""
        for address, segment in list(self.segments.items()):
            live = any(live for _, live in segment.blocks.values())
            if segment.pool == pool and self.uses[pool] == 0 and not live:
                self._deallocate(address, segment.nbytes, self.device, STREAM)
                del self.segments[address]

    def snapshot(self) -> list[dict[str, Any]]:
        """Return what torch's snapshot of a pool has, as far as it is looked at."""
        return [
            {
                "device": self.device,
                "segment_pool_id": segment.pool,
                "address": segment.address,
                "blocks": [
                    {
                        "address": address,
                        "size": size,
                        "state": "active_allocated" if live else "inactive",
                    }
                    for address, (size, live) in segment.blocks.items()
                ],
            }
            for segment in self.segments.values()
        ]

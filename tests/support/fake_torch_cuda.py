# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch's CUDA side without a GPU: as much of its caching allocator as ours has to do with.

Segments come from the functions that the real one would call, by their names in the shared object,
and whoever is registered is told of allocations and frees as there: an allocation after its block
was chosen and before the caller has it, a free before the block can be chosen again.
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


@dataclass
class FakeTorchCuda:
    """The allocator of one device; `install` puts it in the place of torch's."""

    device: int = 0
    routed: bool = False
    told: bool = False
    segments: dict[int, Segment] = field(default_factory=dict)
    released: int = 0
    before_telling: Callable[[], object] = bool  # written in C, and false

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
                self.id = (0, 1)

            def snapshot(self) -> list[dict[str, Any]]:
                return fake.snapshot()

        def begin(device: int, _pool: object) -> None:
            assert device == fake.device
            assert not fake.routed
            fake.routed = True

        def end(_device: int, _pool: object) -> None:
            assert fake.routed
            fake.routed = False

        def release(_device: int, _pool: object) -> None:
            fake.released += 1

        patch.setattr("rmm_uvm.torch.routing._allocators", [])
        patch.setattr(torch.cuda, "is_available", lambda: True)
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

    def _tell(self) -> None:
        self.told = True

    def allocate(self, nbytes: int) -> int:
        """Hand out memory: the least free block that is large enough, or a new segment."""
        assert self.routed
        rounded = -(-nbytes // 512) * 512
        small = rounded <= MIB
        free = [
            (size, address, segment)
            for segment in self.segments.values()
            if (segment.nbytes == 2 * MIB) == small
            for address, (size, live) in segment.blocks.items()
            if not live and size >= rounded
        ]
        if free:
            size, address, segment = min(free, key=lambda one: one[:2])
        else:
            segment = self._new_segment(rounded)
            address, size = segment.address, segment.nbytes
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
        segment = Segment(address, whole, {address: (whole, False)})
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
        """Take memory back, and join it with its neighbours."""
        if self.told:
            self._trace.MemoryDeallocationCallbacks.fire_callbacks(address)
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

    def empty_cache(self) -> None:
        """Give back the segments in which nothing is live."""
        for address, segment in list(self.segments.items()):
            if not any(live for _, live in segment.blocks.values()):
                self._deallocate(address, segment.nbytes, self.device, STREAM)
                del self.segments[address]

    def snapshot(self) -> list[dict[str, Any]]:
        """Return what torch's snapshot of a pool has, as far as it is looked at."""
        return [
            {
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

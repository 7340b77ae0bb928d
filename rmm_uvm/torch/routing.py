# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch's caching allocator, on segments of ours: a memory pool of torch that all threads use.

`torch.cuda.use_mem_pool` is for the thread that calls it; the backward pass runs in others. Torch
has the same for all threads, under a private name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rmm_uvm._lib import torch_segments
from rmm_uvm._lib.torch_segments import TorchSegments
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.torch.streams import watch_streams
from rmm_uvm.torch.telling import before_others, tell

__all__ = ["Routing", "check_torch"]

_NEEDED = ("_cuda_beginAllocateToPool", "_cuda_endAllocateToPool", "_cuda_releasePool")
_NEEDED_OF_AUTOGRAD = ("_top_saved_tensors_default_hooks",)
_LEAST_VERSION = (2, 9)
_allocators: list[Any] = []  # torch calls into it until the process ends


def check_torch() -> None:
    """Refuse a torch that cannot be served.

    Raises
    ------
    AvailabilityError
        If torch is too old, sees no GPU, or lacks what is needed; one line.
    """
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _LEAST_VERSION:
        raise AvailabilityError(
            f"torch {torch.__version__} is too old: memory pools of all threads need "
            f"{'.'.join(map(str, _LEAST_VERSION))} or newer"
        )
    if not torch.cuda.is_available():
        raise AvailabilityError(
            "torch sees no GPU: rmm_uvm.torch.simulated() runs the program on a simulated one"
        )
    missing = [name for name in _NEEDED if not hasattr(torch._C, name)]
    missing += [name for name in _NEEDED_OF_AUTOGRAD if not hasattr(torch._C._autograd, name)]
    if missing:
        raise AvailabilityError(
            f"torch {torch.__version__} has no {missing[0]}: rmm-uvm knows 2.9 to 2.13"
        )
    if torch.cuda.memory.get_allocator_backend() != "native":
        raise AvailabilityError(
            "torch uses the allocator "
            f"{torch.cuda.memory.get_allocator_backend()!r}, which has no memory pools: choose the "
            "native one, or leave 'torch' out of the libraries of rmm_uvm.reinitialize"
        )


class Routing:
    """All of torch's allocations on one device, in segments of ours, until `end`.

    Parameters
    ----------
    segments : TorchSegments
        Who answers.
    device : int
        CUDA ordinal.
    """

    def __init__(self, segments: TorchSegments, device: int) -> None:
        if not _allocators:
            _allocators.append(
                torch.cuda.memory.CUDAPluggableAllocator(
                    torch_segments.__file__, "rmm_uvm_torch_allocate", "rmm_uvm_torch_deallocate"
                )
            )
        self._segments = segments
        self._device = device
        torch.cuda.init()
        segments.answer()
        with torch.cuda.device(device):  # a pool is of the device that is current when it is made
            self.pool: Any = torch.cuda.MemPool(_allocators[0].allocator())
        torch._C._cuda_beginAllocateToPool(device, self.pool.id)
        self._ended = False

    def live(self) -> list[tuple[int, int]]:
        """Return address and bytes of every live allocation in the pool."""
        return [
            (block["address"], block["size"])
            for segment in self.pool.snapshot()
            for block in segment["blocks"]
            if block["state"] != "inactive"
        ]

    def follow(self, freed: Callable[[int], None]) -> Callable[[], None]:
        """Have every allocation and free told to the segments from now on; return what ends it.

        Parameters
        ----------
        freed : callable
            Is told of each free, too: the first byte.
        """
        from torch.cuda import _gpu_trace as trace

        ends = [
            watch_streams(self._segments.several_streams),
            before_others(trace.MemoryAllocationCallbacks, self._segments),
            tell(trace.MemoryDeallocationCallbacks, freed),
            tell(trace.MemoryDeallocationCallbacks, self._segments.on_free),
        ]

        def end() -> None:
            self._segments.unfollow()
            for each in ends:
                each()

        try:
            self._segments.follow(self.live())
        except BaseException:
            end()
            raise
        return end

    def end(self) -> None:
        """Have torch allocate as before; what it has stays where it is until it is freed."""
        if self._ended:
            return
        self._ended = True
        torch._C._cuda_endAllocateToPool(self._device, self.pool.id)
        torch._C._cuda_releasePool(self._device, self.pool.id)
        self.pool = None  # with it go the segments in which nothing lives

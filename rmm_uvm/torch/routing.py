# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch's caching allocator, on segments of ours: a memory pool of torch that all threads use.

`torch.cuda.use_mem_pool` is for the thread that calls it; the backward pass runs in others. Torch
has the same for all threads, under a private name.
"""

from __future__ import annotations

import contextlib
import operator
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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
_outlived: dict[int, weakref.WeakSet[Any]] = {}  # by device: pools that others have after the end


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
    """All of torch's allocations on one device, in segments of ours, until `end`. Thread-safe.

    Parameters
    ----------
    segments : TorchSegments
        Who answers.
    device : int
        CUDA ordinal.

    Notes
    -----
    To torch, a pool that all threads use is one under capture. Until that ends it gives back no
    free segment, and keeps what is freed while other streams may use it. So the routing is taken
    away for a moment now and then; what other threads allocate meanwhile is torch's own memory.

    Of uses that it was told of meanwhile, torch forgets those in other streams, since those of a
    capture are over with it. Ours need not be: the device is waited for.
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
        self._lock = threading.RLock()  # a collection within may come back to us
        self._routed = self._ended = False
        # Pools that others still have: none is to end while one is routed.
        self._former: list[Any] = list(_outlived.get(device, ()))
        torch.cuda.init()
        segments.answer()
        try:
            self.pool: Any = self._new_pool()
            self._start()
        except BaseException:
            segments.leave()
            raise

    def live(self) -> list[tuple[int, int]]:
        """Return address and bytes of every live allocation on the device, ours and torch's."""
        return [
            (block["address"], block["size"])
            for segment in torch.cuda.memory_snapshot()
            if segment["device"] == self._device
            for block in segment["blocks"]
            if block["state"] != "inactive"
        ]

    def deferred_bytes(self) -> int:
        """Return how much was freed and waits for other streams, ours and torch's."""
        statistics = torch.cuda.memory_stats_as_nested_dict(self._device)
        active, allocated = statistics["active_bytes"], statistics["allocated_bytes"]
        waiting: int = active["all"]["current"] - allocated["all"]["current"]
        return waiting

    def allocated_bytes(self) -> int:
        """Return how much of the device tensors have, ours and torch's."""
        statistics = torch.cuda.memory_stats_as_nested_dict(self._device)
        there: int = statistics["allocated_bytes"]["all"]["current"]
        return there

    def follow(
        self,
        freed: Callable[[int], None] | None = None,
        several: Callable[[], None] | None = None,
    ) -> Callable[[], None]:
        """Have every allocation and free told to the segments from now on; return what ends it.

        Parameters
        ----------
        freed : callable, optional
            Is told of each free, too: the first byte.
        several : callable, optional
            Is called when a second stream comes into play, too.
        """
        from torch.cuda import _gpu_trace as trace

        def several_streams() -> None:
            self._segments.several_streams()
            if several is not None:
                several()

        with contextlib.ExitStack() as ends:
            ends.callback(watch_streams(several_streams))  # ends last: it looks who else listens
            ends.callback(before_others(trace.MemoryAllocationCallbacks, self._segments))
            if freed is not None:
                ends.callback(tell(trace.MemoryDeallocationCallbacks, freed))
            ends.callback(
                before_others(trace.MemoryDeallocationCallbacks, self._segments, frees=True)
            )
            ends.callback(lambda: self._segments.unfollow(self._routed))
            self._segments.follow(self.live())
            return ends.pop_all().close

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Have torch allocate as without us within a ``with`` block, and in a new pool after it.

        Segments of the pool before in which nothing lives are given back at once. The others are
        once nothing does and this, or torch's own ``empty_cache``, comes again. Does nothing within
        itself and once ended.
        """
        with self._away() as away:
            if away:
                self._renew()
            yield

    def give_back(self) -> None:
        """Have torch give free segments back, as for a request that it cannot serve.

        First those of pools before: where that is enough the pool of now stays, so that what is
        free in it is used again.
        """
        with self._away() as away:
            if not away:
                return
            self._drop_former()
            torch._C._cuda_emptyCache()
            if self._segments.owed_bytes:
                self._renew()
                torch._C._cuda_emptyCache()

    def reclaim(self) -> None:
        """Have torch make use again of what was freed while other streams may have used it."""
        with self._away() as away:
            if not away:
                return
            # Torch looks at such frees when it allocates, and before it can be out of memory.
            with contextlib.suppress(torch.OutOfMemoryError):
                address = torch.cuda.caching_allocator_alloc(1, self._device)
                torch.cuda.caching_allocator_delete(address)
            torch.cuda.synchronize(self._device)  # what was freed since the first time, too

    def end(self) -> None:
        """Have torch allocate as before; what it has stays where it is until it is freed."""
        with contextlib.suppress(RuntimeError):  # of the program's: it sees it without us
            torch.cuda.synchronize(self._device)
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._stop()
            _outlived.setdefault(self._device, weakref.WeakSet()).update([*self._former, self.pool])
            self._former.clear()
            self.pool = None  # with it go the segments in which nothing lives
            self._segments.leave()

    @contextmanager
    def _away(self) -> Iterator[bool]:
        """Take the routing away within a ``with`` block; False if it is not there anyway."""
        torch.cuda.synchronize(self._device)  # before the lock: others may have to go on for that
        with self._lock:
            if not self._routed:
                yield False
                return
            try:
                self._stop()
                yield True
            finally:
                if not self._ended:
                    self._start()

    def _new_pool(self) -> Any:
        with torch.cuda.device(self._device):  # a pool is of the one that is current
            pool = torch.cuda.MemPool(_allocators[0].allocator())
        pool.snapshot = partial(_segments_of, pool.id)
        return pool

    def _renew(self) -> None:
        """Have another pool take the place of the one of now; none is routed."""
        pool = self._new_pool()
        # After an interrupt here the one of now may be among them.
        self._former = [one for one in self._former if one is not self.pool]
        self._former.append(self.pool)
        self.pool = pool
        self._drop_former()

    def _drop_former(self) -> None:
        """Let go of pools that nobody else has: torch bears no end of one while it is routed."""
        for number in reversed(range(len(self._former))):
            if sys.getrefcount(self._former[number]) <= 2:  # the list's and the argument
                del self._former[number]

    def _start(self) -> None:
        if not self._routed:
            at = self._device, self.pool.id
            _in_one(
                partial(torch._C._cuda_beginAllocateToPool, *at),
                partial(vars(self).update, _routed=True),
            )

    def _stop(self) -> None:
        if self._routed:
            at = self._device, self.pool.id
            _in_one(
                partial(torch._C._cuda_endAllocateToPool, *at),
                partial(torch._C._cuda_releasePool, *at),  # each begin took one
                partial(vars(self).update, _routed=False),
            )


def _segments_of(pool_id: Any, include_traces: bool = True) -> list[dict[str, Any]]:  # noqa: FBT001, FBT002
    """Return a pool's segments, as `torch.cuda.MemPool.snapshot` does.

    Torch itself takes references to the parts of the pool's id with every call that are not its own
    (pytorch/pytorch#196366): from 257 on the number is freed while it is used, and the process
    crashes later. Every `empty_cache` makes a pool here, so that ids get there.
    """
    return [one for one in torch.cuda.memory_snapshot() if one["segment_pool_id"] == pool_id]


def _in_one(*calls: Callable[[], object]) -> None:
    """Call what is written in C: no handler of a signal comes between two of these."""
    deque(map(operator.call, calls), maxlen=0)

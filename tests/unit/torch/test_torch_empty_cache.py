# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What torch keeps free is given back as without us, and nothing of ours stays afterwards."""

from __future__ import annotations

import ctypes
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget
from rmm_uvm.torch.empty_cache import serve_empty_cache
from rmm_uvm.torch.routing import Routing, _in_one

from ...named_threads import others_ended, thread_ids
from ...support.fake_torch_cuda import FakeTorchCuda

MIB = 1 << 20
PLACES: tuple[Any, ...] = (
    torch.cuda,
    torch.cuda.memory,
    torch.accelerator,
    torch.accelerator.memory,
)


def make_pool(budget_mib: int | None = None, *, background: bool = False) -> UvmResourceAdaptor:
    budget = None if budget_mib is None else Budget(budget_mib * MIB, background=background)
    return rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(512 * MIB),
        initial_pool_size="8MiB",
        device_budget=budget,
    )


def held_bytes(memory: rmm_uvm.torch.TorchMemory) -> int:
    segment_bytes: int = memory.statistics()["segments"]["segment_bytes"]
    return segment_bytes


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_empty_cache_gives_free_segments_back_from_wherever_it_is_called(
    cuda: FakeTorchCuda, place: Any
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        kept = cuda.allocate(30 * MIB)
        cuda.free(cuda.allocate(40 * MIB))
        assert held_bytes(memory) == 70 * MIB
        place.empty_cache()
        assert held_bytes(memory) == 30 * MIB
        assert cuda.emptied == 1  # torch's own memory, too
        assert cuda.routed
        assert cuda.allocate(20 * MIB) not in (kept, 0)


def test_without_ours_the_pool_in_use_is_passed_over(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        cuda.free(cuda.allocate(40 * MIB))
        torch._C._cuda_emptyCache()
        assert held_bytes(memory) == 40 * MIB
        assert cuda.emptied == 0


def test_segment_with_a_live_tensor_stays_until_the_cache_is_emptied_after_its_end(
    cuda: FakeTorchCuda,
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        kept, gone = cuda.allocate(8 * MIB), cuda.allocate(8 * MIB)  # of one segment
        cuda.free(gone)
        torch.cuda.empty_cache()
        assert held_bytes(memory) == 20 * MIB
        assert cuda.allocate(8 * MIB) != gone  # a new pool does not use what an old one has free
        assert held_bytes(memory) == 40 * MIB
        cuda.free(kept)
        torch.cuda.empty_cache()
        assert held_bytes(memory) == 20 * MIB


def test_allocations_of_every_pool_are_live_when_the_budget_is_passed(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        driver = memory.managed_mr.driver
        first = cuda.allocate(30 * MIB)
        torch.cuda.empty_cache()
        assert not memory.acting
        for _ in range(2):
            cuda.allocate(30 * MIB)
        assert memory.acting
        statistics = memory.statistics()["residency"]
        assert statistics["dropped_bytes"] == 0
        # The first one left as live memory does: by a copy.
        assert statistics["evicted_bytes"] >= 30 * MIB - driver.resident_bytes(first, 30 * MIB) > 0


def test_what_is_told_of_an_earlier_pool_still_counts(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        first = cuda.allocate(30 * MIB)
        for _ in range(2):
            cuda.allocate(30 * MIB)
        torch.cuda.empty_cache()
        freed = memory.statistics()["segments"]["freed"]
        cuda.free(first)
        assert memory.statistics()["segments"]["freed"] == freed + 1


def test_pool_that_is_kept_is_let_go_afterwards_and_never_while_one_is_routed(
    cuda: FakeTorchCuda,
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        kept = memory.pool
        cuda.free(cuda.allocate(40 * MIB))
        torch.cuda.empty_cache()
        assert memory.pool is not kept
        assert held_bytes(memory) == 40 * MIB
        del kept
        assert held_bytes(memory) == 40 * MIB
        torch.cuda.empty_cache()
        assert held_bytes(memory) == 0
    assert not cuda.mistakes


def test_pool_that_is_kept_beyond_its_block_never_ends_while_another_is_routed(
    cuda: FakeTorchCuda,
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool()) as first:
        kept = first.pool
        cuda.free(cuda.allocate(40 * MIB))
    with rmm_uvm.torch.managed(mr=make_pool()):
        del kept
        gc.collect()
        assert not cuda.mistakes  # torch would end the process
        assert held_bytes(first) == 40 * MIB
    assert held_bytes(first) == 0
    with rmm_uvm.torch.managed(mr=make_pool()) as third:
        kept = third.pool
        cuda.free(cuda.allocate(40 * MIB))
    del kept
    assert held_bytes(third) == 0
    assert not cuda.mistakes


def test_snapshot_of_a_pool_has_its_segments_and_hands_torch_no_id(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        before = cuda.allocate(40 * MIB)
        earlier = memory.pool
        torch.cuda.empty_cache()
        after = cuda.allocate(20 * MIB)
        for pool, address in ((earlier, before), (memory.pool, after)):
            for snapshot in (pool.snapshot(), pool.snapshot(include_traces=False)):
                [segment] = snapshot
                assert segment["segment_pool_id"] == pool.id
                assert segment["blocks"][0]["address"] == address


def test_error_of_torchs_function_is_passed_on_and_routing_goes_on(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        assert not cuda.routed
        raise RuntimeError("CUDA error: planned")

    monkeypatch.setattr(torch._C, "_cuda_emptyCache", fails)
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        with pytest.raises(RuntimeError, match="planned"):
            torch.cuda.empty_cache()
        assert cuda.routed
        assert cuda.allocate(20 * MIB)
        assert held_bytes(memory) == 20 * MIB


def test_pool_that_cannot_be_made_leaves_the_old_one_routed(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_allocator: object) -> None:
        raise MemoryError

    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        pool = memory.pool
        with monkeypatch.context() as patch:
            patch.setattr(torch.cuda, "MemPool", fails)
            with pytest.raises(MemoryError):
                torch.cuda.empty_cache()
        assert cuda.routed
        assert memory.pool is pool
        del pool
        torch.cuda.empty_cache()
        assert cuda.emptied == 1


def test_close_within_the_gap_is_the_end(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        monkeypatch.setattr(torch._C, "_cuda_emptyCache", memory.close)
        torch.cuda.empty_cache()
        assert not cuda.routed
        assert memory.pool is None


def test_threads_that_empty_the_cache_at_once_leave_it_routed(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        threads = [
            threading.Thread(target=lambda: [torch.cuda.empty_cache() for _ in range(50)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cuda.emptied == 200
        assert cuda.routed
        assert cuda.uses[memory.pool.id] == 2
        assert sum(cuda.uses.values()) == 2


def test_signal_whose_handler_raises_comes_after_all_that_belongs_together() -> None:
    def fails(_signal: int, _frame: object) -> None:
        raise TimeoutError

    done: list[int] = []
    before = signal.signal(signal.SIGUSR1, fails)
    try:
        with pytest.raises(TimeoutError):
            _in_one(partial(ctypes.CDLL(None)["raise"], signal.SIGUSR1), partial(done.append, 1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert done == [1]


@pytest.mark.parametrize("inside", [False, True])
def test_interrupt_around_the_gap_leaves_it_routed(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    name = "_drop_former" if inside else "_stop"
    with rmm_uvm.torch.managed(mr=make_pool()) as memory:
        cuda.free(cuda.allocate(40 * MIB))
        with monkeypatch.context() as patch:
            patch.setattr(Routing, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                torch.cuda.empty_cache()
        assert cuda.routed
        assert held_bytes(memory) == 40 * MIB
        gc.collect()
        torch.cuda.empty_cache()
        assert held_bytes(memory) == 0


def test_names_are_torchs_again_after_the_last_of_several_in_any_order() -> None:
    @contextmanager
    def nothing() -> Iterator[None]:
        yield

    theirs = [place.empty_cache for place in PLACES]
    first, second = serve_empty_cache(nothing), serve_empty_cache(lambda: nothing())
    first()
    first()
    assert torch.cuda.empty_cache is not theirs[0]
    second()
    assert [place.empty_cache for place in PLACES] == theirs


@pytest.mark.parametrize("before", [True, False])
def test_wrapper_of_somebody_else_stays_and_both_are_called(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    calls: list[bool] = []

    def wrap() -> Callable[[], None]:
        theirs = torch.cuda.empty_cache

        def counted() -> None:
            calls.append(cuda.routed)
            theirs()

        monkeypatch.setattr(torch.cuda, "empty_cache", counted)
        return counted

    if before:
        counted = wrap()
    for number in range(1, 3):
        with rmm_uvm.torch.managed(mr=make_pool()) as memory:
            if not before and number == 1:
                counted = wrap()
            cuda.free(cuda.allocate(40 * MIB))
            torch.cuda.empty_cache()
            assert held_bytes(memory) == 0
            assert len(calls) == cuda.emptied == number
        assert torch.cuda.empty_cache is counted
    torch.cuda.empty_cache()
    assert len(calls) == cuda.emptied == 3


@pytest.mark.parametrize("tensor_outlives", [False, True])
def test_what_moved_its_pages_ends_with_the_block_or_with_its_last_tensor(
    cuda: FakeTorchCuda, tensor_outlives: bool
) -> None:
    before = thread_ids()
    with rmm_uvm.torch.managed(mr=make_pool(64, background=True)):
        addresses = [cuda.allocate(30 * MIB) for _ in range(3)]
        begun = thread_ids() - before  # of those before, one that was joined may still be listed
        assert begun
        if not tensor_outlives:
            for address in addresses:
                cuda.free(address)
    gc.collect()
    if tensor_outlives:
        assert begun <= thread_ids()
        for address in addresses:
            cuda.free(address)
        torch.cuda.empty_cache()
    assert others_ended(before)

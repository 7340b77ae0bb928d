# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Free segments go for a request that would not fit otherwise, before torch is out of memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget

from ...support.fake_torch_cuda import FakeTorchCuda

MIB = 1 << 20


def make_pool(budget_mib: int | None = 64) -> UvmResourceAdaptor:
    budget = None if budget_mib is None else Budget(budget_mib * MIB, background=False)
    return rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(512 * MIB),
        initial_pool_size="8MiB",
        device_budget=budget,
    )


def segments_of(memory: rmm_uvm.torch.TorchMemory) -> dict[str, Any]:
    segments: dict[str, Any] = memory.statistics()["segments"]
    return segments


@pytest.mark.parametrize("budget_mib", [64, 256, None], ids=["past it", "all fits", "none"])
def test_free_segments_go_for_a_request_beyond_the_maximum(
    cuda: FakeTorchCuda, budget_mib: int | None
) -> None:
    mr = make_pool(budget_mib)
    before = mr.managed_mr.slab_bytes
    with rmm_uvm.torch.managed(mr=mr, maximum="96MiB") as memory:
        kept = cuda.allocate(10 * MIB)
        freed = [cuda.allocate(30 * MIB) for _ in range(2)]
        for each in freed:
            cuda.free(each)
        cuda.allocate(80 * MIB)
        assert set(freed).isdisjoint(cuda.segments)
        assert kept in cuda.segments
        segments = segments_of(memory)
        assert segments["segment_bytes"] == 90 * MIB
        assert mr.managed_mr.slab_bytes == before + 90 * MIB
        assert segments["in_place"] == 1
        assert segments["refused"] == 0


def test_segments_in_which_something_lives_stay_and_torch_is_out_of_memory(
    cuda: FakeTorchCuda,
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(), maximum="96MiB") as memory:
        cuda.allocate(30 * MIB)
        cuda.free(cuda.allocate(30 * MIB))
        with pytest.raises(torch.OutOfMemoryError):
            cuda.allocate(80 * MIB)
        assert f"{60 * MIB} of {96 * MIB} in use" in memory.statistics()["last_refusal"]
        assert segments_of(memory)["segment_bytes"] == 60 * MIB
        cuda.allocate(64 * MIB)
        assert segments_of(memory)["segment_bytes"] == 94 * MIB


def test_a_part_of_a_segment_that_lives_keeps_all_of_it(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(), maximum="96MiB"):
        whole = cuda.allocate(60 * MIB)
        cuda.free(whole)
        cuda.allocate(20 * MIB)
        with pytest.raises(torch.OutOfMemoryError):
            cuda.allocate(50 * MIB)
        assert whole in cuda.segments


def test_what_is_allocated_again_and_again_is_soon_used_again(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(), maximum="96MiB") as memory:
        cuda.free(cuda.allocate(60 * MIB))
        taken, pools = [], []
        for _ in range(6):
            cuda.free(cuda.allocate(80 * MIB))
            taken.append(segments_of(memory)["segments"])
            pools.append(memory.pool)
        assert taken == [2, 3, 3, 3, 3, 3]
        assert len(set(map(id, pools))) == 1  # only the first time another one


@pytest.mark.parametrize("budget_mib", [64, None])
def test_free_segments_go_for_a_request_past_the_cap_of_the_process(
    cuda: FakeTorchCuda, budget_mib: int | None
) -> None:
    mr = make_pool(budget_mib)
    account = mr.managed_mr.account
    try:
        with rmm_uvm.torch.managed(mr=mr) as memory:
            account.limit_bytes = account.used_bytes + 64 * MIB
            cuda.free(cuda.allocate(40 * MIB))
            with pytest.raises(torch.OutOfMemoryError):  # from here on it is known what is free
                cuda.allocate(100 * MIB)
            address = cuda.allocate(60 * MIB)
            assert account.used_bytes <= account.limit_bytes
            assert list(cuda.segments) == [address]
            assert mr.managed_mr.driver.resident_bytes(address, 60 * MIB) == (
                0 if budget_mib is None else 60 * MIB
            )
            with pytest.raises(torch.OutOfMemoryError):
                cuda.allocate(8 * MIB)
            assert "RMM_UVM_MANAGED_LIMIT" in memory.statistics()["last_refusal"]
    finally:
        account.limit_bytes = None


def test_uses_are_announced_once_the_budget_is_passed_as_well(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64), maximum="96MiB") as memory:
        first = cuda.allocate(50 * MIB)
        assert not memory.acting
        cuda.free(first)
        assert segments_of(memory)["freed"] == 1  # it is known what is free
        cuda.allocate(20 * MIB)
        cuda.allocate(34 * MIB)
        assert memory.acting
        statistics = memory.statistics()["residency"]
        assert statistics["evicted_bytes"] == 0
        assert statistics["dropped_bytes"] > 0


def test_first_of_all_requests_is_served_in_place_of_what_is_free(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(256), maximum="96MiB") as memory:
        cuda.free(cuda.allocate(20 * MIB))
        cuda.allocate(90 * MIB)
        assert segments_of(memory)["segment_bytes"] == 90 * MIB


def test_without_a_maximum_that_was_given_nothing_is_followed_at_first(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(256)) as memory:
        cuda.free(cuda.allocate(90 * MIB))
        assert segments_of(memory)["freed"] == 0

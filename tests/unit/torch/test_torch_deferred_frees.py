# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of `record_stream` is used again while torch's memory is managed."""

from __future__ import annotations

import pytest
import torch
from torch.optim import optimizer

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget

from ...support.fake_torch_cuda import FakeTorchCuda

MIB = 1 << 20


def make_pool(budget_mib: int | None) -> UvmResourceAdaptor:
    budget = None if budget_mib is None else Budget(budget_mib * MIB, background=False)
    return rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(512 * MIB),
        initial_pool_size="8MiB",
        device_budget=budget,
    )


def step() -> None:
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]).step()


def use_on_another_stream(cuda: FakeTorchCuda, mebibytes: int = 30) -> None:
    address = cuda.allocate(mebibytes * MIB)
    cuda.record_stream(address)
    cuda.free(address)


@pytest.mark.parametrize("budget_mib", [64, None])
def test_memory_of_another_stream_is_used_again_by_later_steps(
    cuda: FakeTorchCuda, budget_mib: int | None
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(budget_mib)) as memory:
        if budget_mib is not None:
            for _ in range(3):
                cuda.allocate(30 * MIB)
            assert memory.acting
        before = memory.statistics()["segments"]["segment_bytes"]
        for _ in range(10):
            use_on_another_stream(cuda)
            step()
            assert cuda.routed
        grown = memory.statistics()["segments"]["segment_bytes"] - before
        assert grown <= 30 * MIB  # what one step uses
        assert memory.statistics()["reclaims"] > 0
    assert not cuda.mistakes


def test_without_steps_it_waits_for_empty_cache(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(None)) as memory:
        for _ in range(5):
            use_on_another_stream(cuda)
        assert memory.statistics()["segments"]["segment_bytes"] == 150 * MIB
        torch.cuda.empty_cache()
        assert memory.statistics()["segments"]["segment_bytes"] == 0


@pytest.mark.parametrize("budget_mib", [64, None])
def test_steps_of_one_stream_are_left_alone(cuda: FakeTorchCuda, budget_mib: int | None) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(budget_mib)) as memory:
        for _ in range(5):
            cuda.allocate(30 * MIB)
            cuda.free(cuda.allocate(30 * MIB))
            step()
        assert memory.acting == (budget_mib is not None)
        assert memory.statistics()["reclaims"] == cuda.native_allocations == 0


def test_little_that_waits_is_left_alone_until_it_is_a_sixteenth(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(None)) as memory:
        for _ in range(5):
            cuda.allocate(60 * MIB)
        looks = []
        for _ in range(3):
            use_on_another_stream(cuda, 10)
            step()
            looks.append(memory.statistics()["reclaims"])
        assert looks == [0, 1, 1]
    assert not cuda.mistakes


def test_while_it_fits_no_hook_is_there(cuda: FakeTorchCuda) -> None:
    hooks = len(optimizer._global_optimizer_post_hooks)
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        use_on_another_stream(cuda)
        step()
        assert len(optimizer._global_optimizer_post_hooks) == hooks
        assert memory.statistics()["reclaims"] == 0


def test_device_without_memory_of_torchs_own_is_no_error(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_nbytes: int, _device: int) -> int:
        cuda._look_at_deferred()  # torch does before it tries
        raise torch.OutOfMemoryError

    monkeypatch.setattr(torch.cuda, "caching_allocator_alloc", fails)
    with rmm_uvm.torch.managed(mr=make_pool(None)) as memory:
        use_on_another_stream(cuda)
        step()
        assert cuda.routed
        use_on_another_stream(cuda)
        assert memory.statistics()["segments"]["segment_bytes"] == 30 * MIB


def test_other_error_of_the_device_is_passed_on_and_routing_goes_on(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_nbytes: int, _device: int) -> int:
        raise RuntimeError("CUDA error: planned")

    monkeypatch.setattr(torch.cuda, "caching_allocator_alloc", fails)
    with rmm_uvm.torch.managed(mr=make_pool(None)):
        use_on_another_stream(cuda)
        with pytest.raises(RuntimeError, match="planned"):
            step()
        assert cuda.routed


def test_close_takes_the_hook_away_and_waits_for_the_device(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[bool] = []

    def synchronize(_device: int) -> None:
        waited.append(cuda.routed)
        raise RuntimeError("CUDA error: of the program")

    hooks = len(optimizer._global_optimizer_post_hooks)
    with rmm_uvm.torch.managed(mr=make_pool(None)):
        assert len(optimizer._global_optimizer_post_hooks) == hooks + 1
        monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    assert len(optimizer._global_optimizer_post_hooks) == hooks
    assert waited == [True]  # torch forgets uses of other streams once routing ends
    assert not cuda.routed

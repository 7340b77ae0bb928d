# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch on managed memory on a GPU: its own allocator works on, nothing is lost past a budget."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest
import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.residency import Budget

from .torch_loops import losses_of, network

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("torch_gives_back")]

MIB = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def started(gpu: CudaDriver) -> None:
    """Have torch and its libraries open what they keep open, before tests look at what is left."""
    torch.cuda.init()
    losses_of(1, rows=64)


def test_forward_and_backward_allocate_managed_memory_and_torch_counts_it() -> None:
    before = torch.cuda.memory_allocated()
    with rmm_uvm.torch.managed() as memory:
        model = network(depth=2)
        model(torch.randn(512, 1024, device="cuda")).sum().backward()
        held = memory.statistics()["segments"]["segment_bytes"]
        segments = memory.pool.snapshot()
        for parameter in model.parameters():
            address = parameter.grad.data_ptr()
            assert any(0 <= address - one["address"] < one["total_size"] for one in segments)
        assert torch.cuda.memory_allocated() > before
        assert held >= torch.cuda.memory_allocated() - before
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_snapshots_of_a_late_pool_leave_its_id_alone() -> None:
    # Torch's own take references to the id's parts that are not theirs; small numbers bear it.
    with rmm_uvm.torch.managed() as memory:
        while memory.pool.id[1] <= 300:
            torch.cuda.empty_cache()
        tensor = torch.zeros(8 * MIB, dtype=torch.uint8, device="cuda")
        for _ in range(10):
            [segment] = memory.pool.snapshot()
            assert 0 <= tensor.data_ptr() - segment["address"] < segment["total_size"]
            torch.cuda.memory_stats()
        assert memory.pool.id[1] > 300


def test_what_torch_frees_is_given_back_by_empty_cache() -> None:
    with rmm_uvm.torch.managed() as memory:
        tensor = torch.zeros(64 * MIB, dtype=torch.uint8, device="cuda")
        assert memory.statistics()["segments"]["segment_bytes"] >= 64 * MIB
        del tensor
        memory.close()
        gc.collect()
        torch.cuda.empty_cache()
        assert memory.statistics()["segments"]["segment_bytes"] == 0


def test_out_of_memory_is_torchs_own_error_and_passes() -> None:
    with rmm_uvm.torch.managed(maximum="128MiB") as memory:
        kept = torch.ones(32 * MIB, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(128 * MIB, dtype=torch.uint8, device="cuda")
        assert "are exhausted" in memory.statistics()["last_refusal"]
        assert bool((kept == 1).all())


def test_graph_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # Torch makes a stream for graphs, once: it would count as a second one in tests after this.
    monkeypatch.setattr(torch.cuda.graph, "default_capture_stream", None)
    with (
        rmm_uvm.torch.managed(),
        pytest.raises(AvailabilityError, match="no CUDA graph"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        pass


@pytest.mark.parametrize("eager", [False, True])
def test_losses_past_the_budget_are_those_of_the_run_that_fits(eager: bool) -> None:
    expected = losses_of(12)
    with rmm_uvm.torch.managed(device_budget=Budget(160 * MIB, ahead=eager)) as memory:
        found = losses_of(12)
        statistics = memory.statistics()
    assert found == expected
    assert statistics["acting"]
    assert statistics["steps"] >= 10
    assert statistics["residency"]["evicted_bytes"] > 0
    assert statistics["residency"]["failed_calls"] == 0


@pytest.mark.parametrize("policy", ["repeat", "lru", "correlation"])
@pytest.mark.parametrize("streams", [1, 2])
def test_tensors_that_come_and_go_past_the_budget_keep_their_contents(
    policy: str, streams: int
) -> None:
    choose = random.Random(5)
    side = [torch.cuda.Stream() for _ in range(streams - 1)]
    with rmm_uvm.torch.managed(device_budget=Budget(96 * MIB, policy=policy)) as memory:
        live: dict[int, Any] = {}
        wrong = torch.zeros((), dtype=torch.int64, device="cuda")
        for number in range(600):
            mebibytes = choose.choice((1, 2, 3, 5, 8, 13, 21))
            tensor = torch.full((mebibytes * MIB // 8,), number, dtype=torch.int64, device="cuda")
            live[number] = tensor
            if side and number % 7 == 0:
                side[0].wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side[0]):
                    wrong.add_((tensor != number).sum())
                    tensor.record_stream(side[0])
                torch.cuda.current_stream().wait_stream(side[0])
            while sum(one.nbytes for one in live.values()) > 192 * MIB:
                gone = choose.choice(list(live))
                wrong.add_((live[gone] != gone).sum())
                del live[gone]
        for number, tensor in live.items():
            wrong.add_((tensor != number).sum())
        assert int(wrong) == 0
        statistics = memory.statistics()
    assert statistics["acting"]
    assert (statistics["segments"]["unfenced"] > 0) == (streams > 1)
    assert statistics["residency"]["evicted_bytes"] > 0


def test_budget_of_the_installed_pool_is_torchs_too(gpu: CudaDriver) -> None:
    with rmm_uvm.reinitialize("32MiB", "1GiB", device_budget="160MiB", monitor=False):
        with rmm_uvm.torch.managed():
            losses_of(3)
        kept = rmm_uvm.residency_statistics()
        assert kept.budget_bytes == 160 * MIB
        assert kept.evicted_bytes > 0

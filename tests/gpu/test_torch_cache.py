# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch's pool of ours on a GPU, as torch's own: what is free goes back, or is used again."""

from __future__ import annotations

import contextlib
import gc
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.residency import Budget

from .test_torch_memory import MIB
from .torch_loops import losses_of, network

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("torch_gives_back")]

SETTINGS: list[Any] = [None, Budget(160 * MIB)]


def held_bytes(memory: rmm_uvm.torch.TorchMemory) -> int:
    segment_bytes: int = memory.statistics()["segments"]["segment_bytes"]
    return segment_bytes


def tensor_of(mebibytes: int, value: int) -> torch.Tensor:
    return torch.full((mebibytes * MIB // 8,), value, dtype=torch.int64, device="cuda")


@pytest.mark.parametrize("budget", SETTINGS)
def test_empty_cache_gives_free_segments_back_and_live_tensors_stay(budget: Any) -> None:
    with rmm_uvm.torch.managed(device_budget=budget) as memory:
        kept = {value: tensor_of(24, value) for value in range(4)}
        for value in range(100, 104):
            tensor_of(40, value)
        gone = [tensor_of(40, value) for value in range(200, 204)]
        before, reserved = held_bytes(memory), torch.cuda.memory_reserved()
        del gone
        torch.cuda.empty_cache()
        assert held_bytes(memory) <= before - 160 * MIB
        assert torch.cuda.memory_reserved() <= reserved - 160 * MIB
        for value, tensor in kept.items():
            assert bool((tensor == value).all())
        fresh = {value: tensor_of(24, value) for value in range(10, 14)}  # of the next pool
        for value, tensor in {**kept, **fresh}.items():
            assert bool((tensor == value).all())
        kept.clear()
        fresh.clear()
        del tensor
        torch.cuda.empty_cache()
        assert held_bytes(memory) <= 2 * MIB  # of both pools


@pytest.mark.parametrize("budget", SETTINGS)
def test_training_goes_on_as_without_when_the_cache_is_emptied_in_every_step(
    budget: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = losses_of(8)
    step = torch.optim.AdamW.step

    def emptied(self: Any, *args: Any, **kwargs: Any) -> Any:
        torch.cuda.empty_cache()
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", emptied)
    with rmm_uvm.torch.managed(device_budget=budget) as memory:
        found = losses_of(8)
        assert memory.acting == (budget is not None)
    assert found == expected


def test_request_past_the_maximum_works_once_the_cache_is_emptied() -> None:
    with rmm_uvm.torch.managed(maximum="128MiB"):
        free = tensor_of(96, 1)
        del free
        with pytest.raises(torch.OutOfMemoryError):
            tensor_of(112, 2)
        torch.cuda.empty_cache()
        assert int(tensor_of(112, 2).sum()) == 2 * 112 * MIB // 8


def test_threads_that_train_while_another_empties_the_cache_lose_nothing() -> None:
    failed: list[str] = []
    over = threading.Event()

    def work(seed: int) -> None:
        for number in range(200):
            value = seed * 1000 + number
            tensor = tensor_of(3 + number % 9, value)
            if not bool((tensor * 2 == 2 * value).all()):
                failed.append(f"thread {seed}, round {number}")

    with rmm_uvm.torch.managed(device_budget=Budget(48 * MIB)):
        working = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        emptying = threading.Thread(
            target=lambda: [torch.cuda.empty_cache() for _ in iter(over.is_set, True)]
        )
        for thread in [*working, emptying]:
            thread.start()
        for thread in working:
            thread.join()
        over.set()
        emptying.join()
    assert not failed


@pytest.mark.parametrize("budget", SETTINGS)
def test_memory_of_record_stream_is_used_again_and_never_while_it_is_in_use(budget: Any) -> None:
    with rmm_uvm.torch.managed(device_budget=budget) as memory:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        x = torch.randn(512, 1024, device="cuda")
        side = torch.cuda.Stream()
        wrong = torch.zeros((), dtype=torch.int64, device="cuda")
        held = []
        for number in range(24):
            batch = tensor_of(48, number)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(20_000_000)  # so that the free comes first
                wrong.add_((batch != number).sum())
            batch.record_stream(side)
            del batch
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            held.append(held_bytes(memory))
        torch.cuda.synchronize()
        assert int(wrong) == 0
        assert memory.statistics()["reclaims"] > 0
        # Past the budget from some step on; until then it grows.
        assert max(held[12:]) - held[12] <= 48 * MIB


@pytest.mark.parametrize("budget", SETTINGS)
def test_memory_of_record_stream_goes_back_with_empty_cache(budget: Any) -> None:
    with rmm_uvm.torch.managed(device_budget=budget) as memory:
        side = torch.cuda.Stream()
        for number in range(4):
            tensor = tensor_of(48, number)
            tensor.record_stream(side)
            del tensor
        assert held_bytes(memory) >= 4 * 48 * MIB  # torch defers them
        torch.cuda.empty_cache()
        assert held_bytes(memory) <= 2 * MIB


def descriptors() -> int:
    """Return how many files of the driver's counters are open."""
    found = 0
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            found += path.readlink().name == "nvidia-uvm-tools"
    return found


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.parametrize("budget", SETTINGS)
def test_every_block_closes_its_descriptors_and_ends_its_threads(budget: Any) -> None:
    def one() -> None:
        with rmm_uvm.torch.managed(device_budget=budget):
            model = network(depth=4)
            model(torch.randn(4096, 1024, device="cuda")).sum().backward()
        del model
        gc.collect()
        torch.cuda.empty_cache()

    one()  # threads of torch's own stay
    before = descriptors(), threads()
    for _ in range(5):
        one()
    assert (descriptors(), threads()) == before

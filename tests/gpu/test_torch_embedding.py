# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Managed embeddings on a GPU: numbers of torch, hot blocks there, cold rows through a mapping."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

import rmm_uvm
from rmm_uvm.drivers import CudaDriver

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:Sparse invariant checks"),
]

MIB = 1 << 20
ROWS, DIM = 1 << 17, 64  # 32 MiB


@pytest.fixture
def counting(gpu: CudaDriver) -> CudaDriver:
    """Return the GPU, where it counts the bytes that move."""
    if not gpu.counters_available():
        pytest.skip(gpu.counters_available().reason)
    return gpu


def made(gpu: CudaDriver, kind: str = "ManagedEmbedding", **words: Any) -> Any:
    import rmm_uvm.torch as managed

    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size="80MiB",
        maximum_pool_size="80MiB",
        device_budget="16MiB",
    )
    return getattr(managed, kind)(ROWS, DIM, mr=mr, **{"sparse": True, **words})


def ids_of(seed: int, hottest: int = ROWS, total: int = 4096) -> Any:
    """Return ids that are spread over all blocks; of the whole table, or of few hot ids."""
    generator = torch.Generator("cuda").manual_seed(seed)
    ids = torch.randint(0, hottest, (total,), device="cuda", generator=generator)
    return ids * 40_503 % ROWS


@pytest.mark.parametrize("reordered", [False, True])
def test_training_is_that_of_torch_and_goes_to_its_checkpoint(
    gpu: CudaDriver, reordered: bool
) -> None:
    ours = made(gpu)
    theirs = torch.nn.Embedding(ROWS, DIM, sparse=True, device="cuda")
    ours.load_state_dict(theirs.state_dict())
    made_of = [torch.optim.Adagrad(one.parameters(), lr=0.1) for one in (ours, theirs)]
    for step in range(8):
        ids = ids_of(step, 3000)
        for module, optimizer in zip((ours, theirs), made_of, strict=True):
            optimizer.zero_grad()
            module(ids).pow(2).sum().backward()
            optimizer.step()
        if step == 4 and reordered:
            made_of[0].zero_grad()
            assert ours.reorder(made_of[0]) > 0
    found = ours.state_dict()["weight"].to("cuda")
    assert torch.allclose(found, theirs.weight, atol=1e-5)
    theirs.load_state_dict(ours.state_dict())
    assert torch.equal(theirs(ids), ours(ids))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_those_of_torch(gpu: CudaDriver, mode: str) -> None:
    ours = made(gpu, "ManagedEmbeddingBag", mode=mode, sparse=mode != "max")
    theirs = torch.nn.EmbeddingBag(ROWS, DIM, mode=mode, device="cuda")
    ours.load_state_dict(theirs.state_dict())
    ids = ids_of(1).reshape(512, 8)
    assert torch.allclose(ours(ids), theirs(ids), atol=1e-6)


def test_cold_rows_are_read_without_migrating_and_hot_blocks_have_come(
    counting: CudaDriver,
) -> None:
    ours = made(counting, hot_bytes=8 * MIB)
    for step in range(8):
        ours(ids_of(step, 2000))
    assert ours.reorder() > 0
    torch.cuda.synchronize()
    hot = ours.hit_statistics()
    assert hot.reason == ""
    assert hot.hot_bytes == 8 * MIB
    ours.sample_every = 1 << 30  # or blocks would go on following
    before = counting.migrated_bytes()
    for step in range(8, 16):
        ours(ids_of(step))
    torch.cuda.synchronize()
    after = counting.migrated_bytes()
    assert after[0] - before[0] == 0
    assert after[1] - before[1] == 0


def test_bfloat16_rows_are_views_of_the_pool_and_memory_goes_back(gpu: CudaDriver) -> None:
    ours = made(gpu)
    mr = ours._table.memory.mr
    ours.bfloat16()
    assert ours.weight.dtype is torch.bfloat16
    memory = ours._table.memory
    assert ours.weight.data_ptr() == memory.address
    assert mr.get_allocated_bytes() == (memory.blocks + 1) * 2 * MIB
    weight = ours.weight
    del ours, memory
    gc.collect()
    assert mr.get_allocated_bytes() > 0  # the weight is in it
    del weight
    gc.collect()
    assert mr.get_allocated_bytes() == 0

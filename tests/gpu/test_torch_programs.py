# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled and distributed models past a budget on a GPU: they train as without."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.residency import Budget

from .test_torch_memory import MIB, losses_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("torch_gives_back"),
    pytest.mark.filterwarnings("default"),  # of torch and of what it compiles with
]

STEPS = 12


def losses_past_the_budget(wrap: Any) -> tuple[list[float], dict[str, Any]]:
    """Return the losses, and what the memory says of itself."""
    with rmm_uvm.torch.managed(device_budget=Budget(160 * MIB)) as memory:
        found = losses_of(STEPS, wrap=wrap)
        statistics = memory.statistics()
    assert statistics["acting"]
    assert statistics["residency"]["evicted_bytes"] > 0
    assert statistics["residency"]["failed_calls"] == 0
    return found, statistics


@pytest.fixture
def inductor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the default backend compile in this process, into a folder that goes."""
    pytest.importorskip("triton", reason="torch's default backend compiles with Triton")
    compilers = (os.environ.get("CC"), "gcc", "clang")
    if not any(shutil.which(one) for one in compilers if one):
        pytest.skip("Triton needs a C compiler, and there is none")
    import torch._inductor.config

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    torch._dynamo.reset()
    with torch._inductor.config.patch(compile_threads=1):  # no processes that outlive the test
        yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("inductor")
def test_compiled_model_past_the_budget_has_the_losses_of_one_that_is_not_compiled() -> None:
    expected = losses_of(STEPS)
    torch._dynamo.utils.counters.clear()
    found, _ = losses_past_the_budget(torch.compile)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0  # it was compiled
    assert found == pytest.approx(expected, rel=1e-3)
    assert found[-1] < found[0]


@pytest.fixture
def group_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a process group over NCCL with this process alone."""
    if not torch.distributed.is_nccl_available():
        pytest.skip("this build of torch has no NCCL")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    device = torch.device("cuda", torch.cuda.current_device())
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group(
        "nccl", init_method=store, rank=0, world_size=1, device_id=device
    )
    try:
        yield
    finally:
        gc.collect()  # models of the group go before it
        torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("group_of_one")
def test_distributed_model_past_the_budget_has_the_losses_of_the_model_alone() -> None:
    expected = losses_of(STEPS)
    found, statistics = losses_past_the_budget(DistributedDataParallel)
    assert found == expected
    assert statistics["residency"]["dropped_bytes"] == 0  # several streams
    assert statistics["segments"]["unfenced"] > 0

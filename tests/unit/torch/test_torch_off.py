# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch with the off switch: its memory is its own, and handles answer with zeros."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rmm
import torch

import rmm_uvm.torch
from rmm_uvm._lib.torch_segments import TorchSegments
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.mr import ManagedMemoryResource
from rmm_uvm.run.torch_memory import told


@pytest.fixture(autouse=True)
def switched_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RMM_UVM", "off")
    yield
    if (left := rmm_uvm.torch.installed_memory(0)) is not None:
        left.close()


def test_handle_that_is_closed_again_leaves_the_next_one() -> None:
    first = rmm_uvm.torch.install()
    first.close()
    second = rmm_uvm.torch.install()
    first.close()
    assert rmm_uvm.torch.installed_memory() is second
    second.close()


def test_handle_answers_and_torch_is_left_alone() -> None:
    with rmm_uvm.torch.managed(device_budget="1GiB", evict="activations") as memory:
        assert rmm_uvm.torch.installed_memory(0) is memory
        assert (memory.device, memory.acting, memory.pool) == (0, False, None)
        assert memory.managed_mr is rmm.mr.get_per_device_resource(0)
        assert memory.statistics()["residency"]["evicted_bytes"] == 0
        assert told(memory.statistics())  # as `rmm-uvm run` has it
        assert (memory.sleep().moved_bytes, memory.wake()) == (0, 0)
        with pytest.raises(AvailabilityError, match="already"):
            rmm_uvm.torch.install("cuda:0")
    memory.close()
    assert rmm_uvm.torch.installed_memory(0) is None
    assert not torch.cuda.is_initialized()


def test_names_of_counts_are_those_of_segments() -> None:
    segments = TorchSegments(ManagedMemoryResource(rmm_uvm.simulated_device("64MiB")), 1 << 20)
    with rmm_uvm.torch.managed() as memory:
        assert memory.statistics()["segments"].keys() == segments.statistics().keys()


def test_ordinal_is_the_one_that_is_named() -> None:
    for device in (1, "cuda:1", torch.device("cuda", 1)):
        with rmm_uvm.torch.managed(device) as memory:
            assert memory.device == 1


def test_settings_are_checked_all_the_same() -> None:
    with pytest.raises(ConfigurationError):
        rmm_uvm.torch.install(evict="nothing")
    with pytest.raises(ConfigurationError):
        rmm_uvm.torch.install(device="cpu")


def test_announced_does_nothing() -> None:
    with rmm_uvm.torch.announced():
        assert torch.nn.Linear(4, 1)(torch.ones(4)).shape == (1,)


def test_switch_that_is_on_needs_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM", "on")
    with pytest.raises(AvailabilityError, match="torch sees no GPU"):
        rmm_uvm.torch.install()


def test_table_keeps_a_pool_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    for mr in (None, rmm_uvm.managed_pool()):
        table = rmm_uvm.torch.ManagedEmbedding(100, 8, mr=mr)
        assert table(torch.tensor([1])).shape == (1, 8)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`TorchMemory.sleep` and `wake`: torch's memory leaves the device, and comes back."""

from __future__ import annotations

import ctypes

import pytest

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget

from ...support.fake_torch_cuda import FakeTorchCuda

MIB = 1 << 20


def make_pool(budget_mib: int | None = 64) -> UvmResourceAdaptor:
    budget = None if budget_mib is None else Budget(budget_mib * MIB, background=False)
    return rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(128 * MIB, backing=True),
        initial_pool_size="8MiB",
        device_budget=budget,
    )


@pytest.mark.parametrize("beyond", [False, True], ids=["all fits", "past the budget"])
def test_what_lives_sleeps_and_wakes_and_free_segments_are_given_back(
    cuda: FakeTorchCuda, beyond: bool
) -> None:
    mr = make_pool()
    with rmm_uvm.torch.managed(mr=mr) as memory:
        weights = cuda.allocate(40 * MIB)
        ctypes.memset(weights, 7, 40 * MIB)
        cuda.free(cuda.allocate(30 * MIB if beyond else 12 * MIB))
        assert memory.acting == beyond
        there_bytes = mr.driver.resident_bytes(weights, 40 * MIB)
        slept = memory.sleep()
        assert slept.moved_bytes == there_bytes
        assert slept.given_back_bytes == (30 if beyond else 12) * MIB
        assert mr.driver.resident_bytes(weights, 40 * MIB) == 0
        assert memory.statistics()["segments"]["segment_bytes"] == 40 * MIB
        assert memory.statistics()["residency"]["resident_bytes"] == 0
        assert memory.wake() == there_bytes
        assert mr.driver.resident_bytes(weights, 40 * MIB) == there_bytes
        assert ctypes.string_at(weights, 40 * MIB) == b"\7" * 40 * MIB


def test_new_memory_comes_to_the_device_while_asleep(cuda: FakeTorchCuda) -> None:
    mr = make_pool()
    with rmm_uvm.torch.managed(mr=mr) as memory:
        weights = cuda.allocate(30 * MIB)
        memory.sleep()
        more = cuda.allocate(20 * MIB)
        assert mr.driver.resident_bytes(more, 20 * MIB) == 20 * MIB
        assert mr.driver.resident_bytes(weights, 30 * MIB) == 0
        memory.wake()
        assert mr.driver.resident_bytes(weights, 30 * MIB) == 30 * MIB


def test_sleep_is_refused_without_a_budget_and_after_the_end(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(None)) as memory:
        cuda.allocate(10 * MIB)
        for call in (memory.sleep, memory.wake):
            with pytest.raises(AvailabilityError, match="there is no budget: give device_budget"):
                call()
    for call in (memory.sleep, memory.wake):
        with pytest.raises(AvailabilityError, match=r"after close\(\)"):
            call()

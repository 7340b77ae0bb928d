# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``activations="copy"``: what is asked for reaches the copies, and all of it ends."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch

import rmm_uvm.torch
from rmm_uvm.errors import ConfigurationError, DriverError, MonitorWarning
from rmm_uvm.torch.activations.copied import CopiedActivations

from ...support.announced_uses import batch
from ...support.fake_torch_cuda import FakeTorchCuda
from ...support.late_streams import LateStreams
from .test_torch_memory import make_pool

MIB = 1 << 20
OUTPUT_BYTES = 5 << 19  # of the first layer below: once copied, it counts beside what the pool has


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> LateStreams:
    """Have copies made by streams of the CPU, of tensors there."""
    streams = LateStreams()
    monkeypatch.setattr("rmm_uvm.torch.memory.CudaSideStreams", lambda *_: streams)
    monkeypatch.setattr(
        "rmm_uvm.torch.memory.CopiedActivations",
        lambda streams, _, budget_bytes, live_bytes, **asked: CopiedActivations(
            streams, torch.device("cpu"), budget_bytes, live_bytes, **asked
        ),
    )
    return streams


def pass_budget(cuda: FakeTorchCuda) -> list[int]:
    return [cuda.allocate(30 * MIB) for _ in range(3)]


def forward() -> torch.Tensor:
    model = torch.nn.Sequential(torch.nn.Linear(8, 1 << 17), torch.nn.GELU(), torch.nn.Tanh())
    loss: torch.Tensor = model(batch()).sum()
    return loss


def train() -> None:
    forward().backward()


def activations_of(memory: rmm_uvm.torch.TorchMemory) -> dict[str, Any]:
    found: dict[str, Any] = memory.statistics()["activations"]
    return found


def test_copies_go_through_a_thirty_second_of_the_budget_until_it_is_closed(
    cuda: FakeTorchCuda, late: LateStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def made(_driver: object, staging_bytes: int) -> LateStreams:
        streams = LateStreams(staging_bytes=staging_bytes)
        asked.extend([staging_bytes, weakref.ref(streams)])
        return streams

    monkeypatch.setattr("rmm_uvm.torch.memory.CudaSideStreams", made)
    memory = rmm_uvm.torch.install(mr=make_pool(192), activations="copy")
    kept = [cuda.allocate(60 * MIB) for _ in range(4)]
    train()
    there = memory.statistics()
    assert there["activations"]["staging_bytes"] == 6 * MIB
    memory.close()
    gc.collect()
    nbytes, gone = asked
    assert nbytes == 6 * MIB
    assert gone() is None  # with its memory, although the handle is still there
    after = memory.statistics()
    assert after["acting"]
    assert after["activations"] == there["activations"]
    del kept


def test_what_copies_take_of_the_device_is_as_if_the_budget_were_less(
    cuda: FakeTorchCuda, late: LateStreams
) -> None:
    late.staging_bytes = 16 * MIB
    with rmm_uvm.torch.managed(mr=make_pool(64), activations="copy") as memory:
        kept = pass_budget(cuda)
        train()
        train()
        found = activations_of(memory)
        assert found["staging_bytes"] == 16 * MIB
        assert found["needed_bytes"] == (90 - 48 + 3) * MIB + OUTPUT_BYTES
        del kept


def test_copies_are_made_past_the_budget_and_only_then(
    cuda: FakeTorchCuda, late: LateStreams
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64), activations="copy") as memory:
        train()
        assert memory.statistics()["activations"] is None
        kept = pass_budget(cuda)
        assert memory.acting
        train()
        assert activations_of(memory)["copied_bytes"] > 2 * MIB
        assert activations_of(memory)["needed_bytes"] is None
        cuda.free(kept[0])
        train()
        assert activations_of(memory)["needed_bytes"] == (90 - 64 + 4) * MIB + OUTPUT_BYTES
    late.finish()
    assert not late.mistakes


def test_what_lives_between_two_looks_leaves_as_well_from_the_next_round_on(
    cuda: FakeTorchCuda, late: LateStreams
) -> None:
    mr = make_pool(64)
    with rmm_uvm.torch.managed(mr=mr, activations="copy") as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(2)]
        cuda.free(cuda.allocate(30 * MIB))
        train()  # of this round it is not known what has to leave
        for needed_mib in (0, 60 + 30 - 64 + 4):
            # As a program uses them: what is not used and away needs no room.
            mr.managed_mr.residency.touch_all([(one, 30 * MIB, one) for one in kept])
            loss = forward()  # which begins a round
            assert activations_of(memory)["needed_bytes"] == pytest.approx(
                needed_mib * MIB, abs=OUTPUT_BYTES
            )
            cuda.free(cuda.allocate(30 * MIB))  # as a loss does with temporary tensors
            loss.backward()
            cuda.free(cuda.allocate(34 * MIB))  # as an optimiser does: no copy helps against it
        del kept


def test_by_default_nothing_is_copied(cuda: FakeTorchCuda, late: LateStreams) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        pass_budget(cuda)
        train()
        assert memory.acting
        assert memory.statistics()["activations"] is None
    assert late.copies_total == 0


def test_second_stream_ends_copying(cuda: FakeTorchCuda, late: LateStreams) -> None:
    from torch.cuda import _gpu_trace

    with rmm_uvm.torch.managed(mr=make_pool(64), activations="copy") as memory:
        kept = pass_budget(cuda)
        train()
        copied_bytes = activations_of(memory)["copied_bytes"]
        assert copied_bytes > 0
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 0
        _gpu_trace.EventWaitCallbacks.fire_callbacks(1, 77)
        train()
        assert activations_of(memory)["copied_bytes"] == copied_bytes
        assert activations_of(memory)["fallbacks"]["several_streams"] > 0
        cuda.free(kept[1])
        assert memory.statistics()["segments"]["unfenced"] == 1


@pytest.mark.parametrize("error", [DriverError, MemoryError])
def test_without_streams_activations_migrate_and_that_is_warned_of(
    cuda: FakeTorchCuda, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error("no stream today")

    monkeypatch.setattr("rmm_uvm.torch.memory.CudaSideStreams", fails)
    with rmm_uvm.torch.managed(mr=make_pool(64), activations="copy") as memory:
        cuda.allocate(40 * MIB)
        with pytest.warns(MonitorWarning, match=r"no stream today; activations migrate"):
            cuda.allocate(60 * MIB)
        assert memory.acting
        assert memory.statistics()["activations"] is None


def test_close_goes_through_although_a_part_of_it_is_interrupted(
    cuda: FakeTorchCuda, late: LateStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    memory = rmm_uvm.torch.install(mr=make_pool(64), activations="copy")
    pass_budget(cuda)
    train()
    monkeypatch.setattr(late, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.close()
    assert not cuda.routed
    assert rmm_uvm.torch.installed_memory(0) is None
    memory.close()


def test_unknown_way_is_refused(cuda: FakeTorchCuda) -> None:
    with pytest.raises(ConfigurationError, match="use one of 'migrate', 'copy'"):
        rmm_uvm.torch.install(mr=make_pool(), activations="move")  # type: ignore[arg-type]
    assert not cuda.routed

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Of what a second stream may use nothing is taken for dead."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.cuda import _gpu_trace

import rmm_uvm.torch

from ...support.fake_torch_cuda import FakeTorchCuda
from .test_torch_memory import make_pool

MIB = 1 << 20


class Stream:
    """Stands for torch's, which cannot be made without a GPU; the default one at first."""

    cuda_stream = 0


def test_with_a_second_stream_nothing_is_dropped(cuda: FakeTorchCuda) -> None:
    mr = make_pool(64)
    with rmm_uvm.torch.managed(mr=mr) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        assert memory.acting
        _gpu_trace.EventWaitCallbacks.fire_callbacks(1, 77)
        for address in kept:
            cuda.free(address)
        cuda.allocate(30 * MIB)
        cuda.allocate(30 * MIB)
        cuda.allocate(30 * MIB)
        assert memory.statistics()["segments"]["unfenced"] == 3
        assert memory.statistics()["residency"]["dropped_bytes"] == 0


def test_stream_that_was_there_before_the_pressure_counts(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "Stream", Stream)
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        stream = Stream()
        stream.cuda_stream = 77
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 1


def test_segment_of_another_stream_is_a_second_stream(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 0
        other = cuda.take_segment(20 * MIB, stream=77)
        cuda.free(kept[1])
        assert memory.statistics()["segments"]["unfenced"] == 1
        cuda.give_segment_back(other, 20 * MIB, stream=77)


def test_default_stream_alone_is_no_second_stream(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "Stream", Stream)
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        stream = Stream()
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        cuda.free(kept[0])
        assert stream.cuda_stream == memory.statistics()["segments"]["unfenced"] == 0


def test_wait_for_an_event_of_the_same_stream_is_no_second_stream(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        _gpu_trace.EventWaitCallbacks.fire_callbacks(1, 0)  # recorded before torch told
        _gpu_trace.EventRecordCallbacks.fire_callbacks(1, 0)
        _gpu_trace.EventWaitCallbacks.fire_callbacks(1, 0)
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 0


@pytest.mark.parametrize(
    "told",
    [
        [(_gpu_trace.EventRecordCallbacks, (1, 77)), (_gpu_trace.EventWaitCallbacks, (1, 0))],
        [(_gpu_trace.EventRecordCallbacks, (1, 0)), (_gpu_trace.EventWaitCallbacks, (1, 77))],
        [(_gpu_trace.EventWaitCallbacks, (1, 77))],
    ],
)
def test_wait_for_an_event_of_another_stream_is_a_second_stream(
    cuda: FakeTorchCuda, told: list[tuple[Any, tuple[int, int]]]
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        for registry, arguments in told:
            registry.fire_callbacks(*arguments)
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 1


def test_event_at_the_address_of_one_that_went_is_another_one(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        _gpu_trace.EventRecordCallbacks.fire_callbacks(1, 77)
        _gpu_trace.EventDeletionCallbacks.fire_callbacks(1)
        _gpu_trace.EventWaitCallbacks.fire_callbacks(1, 0)
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 0


def test_event_of_the_program_may_have_been_recorded_in_any_stream_before(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Event:
        pass

    monkeypatch.setattr(torch, "Event", Event)
    event = Event()
    event.me = event  # type: ignore[attr-defined]  # or the collector would not look at it
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        _gpu_trace.EventWaitCallbacks.fire_callbacks(1, 0)
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 1
    del event.me  # type: ignore[attr-defined]

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Of what a second stream may use nothing is taken for dead."""

from __future__ import annotations

import pytest
import torch

import rmm_uvm.torch

from ...support.fake_torch_cuda import FakeTorchCuda
from .test_torch_memory import make_pool

MIB = 1 << 20


class Stream:
    """Stands for torch's, which cannot be made without a GPU; the default one at first."""

    cuda_stream = 0


def test_with_a_second_stream_nothing_is_dropped(cuda: FakeTorchCuda) -> None:
    from torch.cuda import _gpu_trace

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


def test_default_stream_that_waits_for_an_event_waits_for_a_second_stream(
    cuda: FakeTorchCuda,
) -> None:
    from torch.cuda import _gpu_trace

    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 0
        _gpu_trace.EventWaitCallbacks.fire_callbacks(1, 0)
        cuda.free(kept[1])
        assert memory.statistics()["segments"]["unfenced"] == 1

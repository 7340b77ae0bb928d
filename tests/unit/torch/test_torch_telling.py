# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ours are told of allocations before others, and take nothing away from those."""

from __future__ import annotations

import pytest
from torch.cuda import _gpu_trace

from rmm_uvm._lib.torch_segments import TorchSegments
from rmm_uvm.torch.telling import before_others, tell

from .test_torch_memory import make_pool


@pytest.fixture
def segments() -> TorchSegments:
    return TorchSegments(make_pool().managed_mr, 1 << 30)


def test_callbacks_of_others_are_called_whenever_they_came(segments: TorchSegments) -> None:
    registry = _gpu_trace.MemoryAllocationCallbacks
    told: list[tuple[str, int]] = []
    ends = [tell(registry, lambda start: told.append(("before", start)))]
    ends.append(before_others(registry, segments))
    registry.fire_callbacks(1)
    ends.append(tell(registry, lambda start: told.append(("after", start))))
    registry.fire_callbacks(2)
    for end in reversed(ends):
        end()
    registry.fire_callbacks(3)
    assert told == [("before", 1), ("before", 2), ("after", 2)]


def test_function_that_others_put_there_is_called_although_nobody_is_registered(
    segments: TorchSegments, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = _gpu_trace.MemoryAllocationCallbacks
    told: list[int] = []
    monkeypatch.setattr(registry, "fire_callbacks", told.append)
    end = before_others(registry, segments)
    registry.fire_callbacks(1)
    end()
    registry.fire_callbacks(2)
    assert told == [1, 2]


def test_nothing_of_pythons_is_called_while_nobody_else_is_told(segments: TorchSegments) -> None:
    registry = _gpu_trace.MemoryAllocationCallbacks
    called: list[int] = []

    class Registry(type(registry)):  # type: ignore[misc]
        def fire_callbacks(self, *arguments: int) -> None:
            called.extend(arguments)
            super().fire_callbacks(*arguments)

    own = Registry("of a test")
    end = before_others(own, segments)
    own.fire_callbacks(1)
    assert called == []
    own.callback_list = [lambda _: None]
    own.fire_callbacks(2)
    assert called == [2]
    end()

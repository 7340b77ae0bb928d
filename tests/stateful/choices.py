# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What programs choose from: sizes, budgets, streams, and the calls that fail."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import precondition
from rmm.pylibrmm.stream import DEFAULT_STREAM, Stream

MIB = 1 << 20
DEVICE_BYTES = 64 * MIB
POOL_BYTES = 40 * MIB
MOST_BYTES = 96 * MIB
MOST_REQUEST_BYTES = 10 * MIB  # the largest of `sizes_bytes`, in five blocks
# Calls that may fail at any time without a loss: the answers of a driver that is out of something.
CALLS = (
    "memory",
    "allocate_managed",
    "prefetch",
    "discard",
    "discard_and_prefetch",
    "advise",
    "order",
    "mark",
    "own_stream",
    "neighbor_memory",
    "read_neighbor_load",
    "measure_links",
)
CODES = ("out_of_memory", "invalid_value", "not_supported", "driver_error")
POLICIES = ("repeat", "lru", "fifo", "correlation")

sizes_bytes = st.one_of(
    st.integers(1, 700),
    st.integers(1, 4 * MIB),
    st.sampled_from([256, 4096, 2 * MIB - 256, 2 * MIB, 2 * MIB + 1, 4 * MIB, 6 * MIB + 257]),
)
numbers = st.integers(0, 31)
handles = {7: 7, 9: 9}  # of streams; where there is a GPU, they are those of streams of its own
streams = st.sampled_from([0, 7, 9]).map(lambda number: handles.get(number, number))
budgets_bytes = st.sampled_from([8 * MIB, 10 * MIB, 16 * MIB, 24 * MIB])


class _Handle:
    """A stream as other libraries hand it over: the simulated device only tells them apart."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def stream_of(handle: int) -> Stream:
    """Return RMM's stream of one of `streams`."""
    return Stream(_Handle(handle)) if handle else DEFAULT_STREAM


def only_if(condition: Callable[[Any], object]) -> Callable[[Callable[..., Any]], Any]:
    """Let a rule do something only where it can.

    It is chosen only there, but for machines that say `unordered`: what their threads did is not
    the same again, while Hypothesis wants the same choices after the same choices.
    """

    def decorated(step: Callable[..., Any]) -> Any:
        @functools.wraps(step)
        def guarded(self: Any, *arguments: Any, **named: Any) -> Any:
            return step(self, *arguments, **named) if condition(self) else None

        return precondition(lambda self: self.unordered or bool(condition(self)))(guarded)

    return decorated

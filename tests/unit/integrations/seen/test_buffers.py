# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers of RMM and arrays of RAFT are announced when somebody asks for their interface."""

from __future__ import annotations

import _thread
import operator
import sys
import time
from typing import Any

import rmm

import rmm_uvm
from rmm_uvm.integrations.seen.announcer import Announcer
from rmm_uvm.integrations.seen.buffers import HandedBuffers, wire_buffers

MIB = 1 << 20


def test_a_buffer_that_is_handed_out_is_announced(
    residency: Any, full: Any, announced: Any
) -> None:
    wiring = wire_buffers([residency])
    theirs = full[0].__cuda_array_interface__
    if wiring.active:  # RMM's wheels let its classes be changed
        assert announced() == 6
        assert theirs["data"][0] == full[0].ptr
        assert rmm_uvm.residency.memory_of(full[0]) == ((full[0].ptr, 6 * MIB),)
    else:
        assert wiring.reason == "this RMM's buffers cannot be seen"
    assert announced() == 0
    wiring.undo()
    assert full[0].__cuda_array_interface__ == theirs
    assert announced() == 0


def test_a_buffer_that_cudf_wraps_is_not_used(residency: Any, full: Any, announced: Any) -> None:
    wiring = wire_buffers([residency])
    seen_mib = 6 if wiring.active else 0  # where RMM's classes cannot be changed, nothing is seen

    def wrap(buffer: rmm.DeviceBuffer) -> Any:
        return buffer.__cuda_array_interface__

    def asks_within(module: str | None) -> Any:
        names: dict[str, Any] = {"__name__": module}
        exec("def wrap(buffer): return buffer.__cuda_array_interface__", names)
        return names["wrap"]

    compiled = operator.attrgetter("__cuda_array_interface__")  # no frame of its own, as pylibcudf
    in_a_call = Announcer("cuDF", [residency]).before("call", compiled, lambda *_: ([], 0))
    for asks in (in_a_call, asks_within("cudf.core.buffer"), asks_within("pylibcudf.column")):
        assert asks(full[0])["data"][0] == full[0].ptr
        assert announced() == 0
    for asks in (wrap, asks_within("cudfx"), asks_within(None), compiled):
        asks(full[0])
        assert announced() == seen_mib
    holders = sys.getrefcount(full[0])
    _thread.start_new_thread(compiled, (full[0],))  # without a frame of Python's
    begun, seen = time.monotonic(), 0
    # It announces, and lets go of the buffer a little later; only then the pool can go.
    while seen < seen_mib or sys.getrefcount(full[0]) > holders:
        assert time.monotonic() < begun + 10
        seen += announced()
    assert seen == seen_mib
    wiring.undo()


def test_an_array_of_raft_is_announced(
    residency: Any, play: Any, pool: Any, full: Any, announced: Any
) -> None:
    class device_ndarray:  # noqa: N801 - RAFT's name
        def __init__(self, buffer: rmm.DeviceBuffer) -> None:
            self._held = buffer

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {"data": (self._held.ptr, False), "shape": (self._held.size,), "typestr": "|u1"}

    play("pylibraft")
    play("pylibraft.common")
    play("pylibraft.common.device_ndarray", device_ndarray=device_ndarray)
    seam = HandedBuffers([residency])
    seam.attach_when_imported()
    array = device_ndarray(rmm.DeviceBuffer(size=4 * MIB, mr=pool))
    announced()
    assert array.__cuda_array_interface__["shape"] == (4 * MIB,)
    assert announced() == 4
    seam.detach()
    assert array.__cuda_array_interface__["shape"] == (4 * MIB,)
    assert announced() == 0

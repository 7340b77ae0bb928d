# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whole messages over the in-process transport."""

from __future__ import annotations

import asyncio

from .fakes import InProcessChannel, Process, contents


async def _transfer(one, other, frames):
    here, there = InProcessChannel.pair()
    _, received = await asyncio.gather(one.send(here, frames, other), other.receive(there))
    return received


def test_transfer_of_managed_frames_is_staged_and_equal() -> None:
    one, other = Process(), Process()
    frames = [b"header", one.frame(100_000, 1), one.frame(10, 2), bytearray(20_000)]
    received = asyncio.run(_transfer(one, other, frames))
    assert [contents(f) for f in received] == [contents(f) for f in frames]
    assert one.totals.sent_staged_bytes == 100_010 == other.totals.received_staged_bytes
    assert one.totals.sent_overflow_bytes == other.totals.received_overflow_bytes == 0
    one.assert_whole()
    other.assert_whole()

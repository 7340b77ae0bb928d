# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The targets of the wire notice a reader that believes what a peer says."""

from __future__ import annotations

import json

import pytest

from rmm_uvm.dask.comm import handshake, receive, wire
from rmm_uvm.dask.comm.wire import Header

from . import wire_target
from .make_corpus import seeds
from .targets import TARGETS, Finding

MESSAGES = seeds()["wire-message"]


def test_target_notices_a_header_that_is_taken_at_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = wire.pack_prelude(closing=False, entries=1 << 22)
    TARGETS["wire-message"](claimed)
    claimed = claimed[:8] + (1 << 24).to_bytes(8, "little")
    TARGETS["wire-message"](claimed)
    monkeypatch.setattr(wire, "MOST_ENTRIES", 1 << 24)
    with pytest.raises(Finding, match="bytes were taken for 16"):
        TARGETS["wire-message"](claimed)


def test_target_notices_frames_that_the_host_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    unpack = receive.unpack_header
    monkeypatch.setattr(receive, "unpack_header", lambda *found: unpack(*found[:2]))
    entries, header = wire.pack_header([wire.FrameKind.HOST], [64 << 20])
    with pytest.raises(Finding, match="were taken"):
        TARGETS["wire-message"](wire.pack_prelude(closing=False, entries=entries) + header)


def test_target_notices_a_message_that_no_sender_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "unpack_prelude", lambda _: (False, 1))
    monkeypatch.setattr(receive, "unpack_header", lambda *_: Header((wire.FrameKind.HOST,), (4,)))
    with pytest.raises(Finding, match="was understood"):
        TARGETS["wire-message"](MESSAGES["host-frames"])


@pytest.mark.parametrize(
    ("reader", "seed"),
    [("unpack_ready", "ready-to-pull"), ("unpack_done", "done"), ("unpack_offer", "offer")],
)
def test_target_notices_what_is_said_of_pulling_and_understood_as_something_else(
    monkeypatch: pytest.MonkeyPatch, reader: str, seed: str
) -> None:
    other = {"unpack_offer": wire.unpack_offer(bytes(112) + (1).to_bytes(8, "little"))}
    TARGETS["wire-message"](MESSAGES[seed])
    readers = tuple(
        (size, lambda _: other.get(reader, wire.ChunkName(1, 2)), pack)
        if unpack is getattr(wire, reader)
        else (size, unpack, pack)
        for size, unpack, pack in wire_target._PULLING
    )
    monkeypatch.setattr(wire_target, "_PULLING", readers)
    with pytest.raises(Finding, match="was understood as"):
        TARGETS["wire-message"](MESSAGES[seed])


def test_target_notices_a_peer_with_chunks_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"wire": wire.WIRE_VERSION, "version": "1", "chunk_bytes": -256, "receives": "staged"}
    TARGETS["wire-handshake"](json.dumps(said).encode())
    monkeypatch.setattr(handshake, "_is_chunk_size", lambda _: True)
    with pytest.raises(Finding, match="no size of chunks"):
        TARGETS["wire-handshake"](json.dumps(said).encode())

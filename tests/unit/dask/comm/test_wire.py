# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Prelude and header: distributed-ucxx's own where nothing is staged, and checked."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.comm.wire import (
    MOST_ENTRIES,
    MOST_MESSAGE_BYTES,
    OPENING_BYTES,
    PRELUDE_BYTES,
    ChunkName,
    FrameKind,
    SlabOffer,
    frames_in_opening,
    header_bytes,
    header_in_opening,
    pack_answer,
    pack_done,
    pack_header,
    pack_offer,
    pack_opening,
    pack_prelude,
    pack_ready,
    unpack_answer,
    unpack_done,
    unpack_header,
    unpack_offer,
    unpack_opening,
    unpack_prelude,
    unpack_ready,
)
from rmm_uvm.errors import DataError

frames = st.lists(
    st.tuples(st.booleans(), st.integers(0, MOST_MESSAGE_BYTES // 32)), min_size=1, max_size=20
)


@given(frames)
def test_header_without_a_stream_is_what_distributed_ucxx_packs(
    entries: list[tuple[bool, int]],
) -> None:
    cuda_frames, sizes = [e[0] for e in entries], [e[1] for e in entries]
    n = len(entries)
    count, header = pack_header([FrameKind(is_cuda) for is_cuda in cuda_frames], sizes)
    assert header == struct.pack(n * "?" + n * "Q", *cuda_frames, *sizes)
    assert header_bytes(count) == len(header)
    prelude = pack_prelude(closing=False, entries=count)
    assert prelude == struct.pack("?Q", False, n)
    assert len(prelude) == PRELUDE_BYTES


@given(
    frames,
    st.integers(1, 2**30).map(lambda n: n * 256),
    st.sampled_from([FrameKind.CHUNK, FrameKind.OFFER, FrameKind.PULL]),
)
def test_header_with_a_stream_comes_back_as_it_was(
    entries: list[tuple[bool, int]], chunk_bytes: int, way: FrameKind
) -> None:
    kinds = [FrameKind.STREAM if e[0] else FrameKind.HOST for e in entries] + [FrameKind.STREAM]
    sizes = [e[1] for e in entries] + [7]
    count, packed = pack_header(kinds, sizes, chunk_bytes, way)
    header = unpack_header(packed, count)
    assert (list(header.kinds), list(header.sizes)) == (kinds, sizes)
    assert (header.chunk_bytes, header.way) == (chunk_bytes, way)


@pytest.mark.parametrize(("closing", "entries"), [(True, 0), (False, 1), (False, MOST_ENTRIES)])
def test_prelude_comes_back_as_it_was(closing: bool, entries: int) -> None:
    packed = pack_prelude(closing=closing, entries=entries)
    assert unpack_prelude(packed) == (closing, entries)


@pytest.mark.parametrize(
    ("prelude", "match"),
    [
        (b"", "0 bytes"),
        (bytes(15), "15 bytes"),
        (bytes(17), "17 bytes"),
        (struct.pack("BQ", 2, 1), "a prelude of ucxuvm"),
        (b"\0\0\0\1\0\0\0\0" + bytes([1, *bytes(7)]), "a prelude of ucxuvm"),
        (struct.pack("?Q", False, 0), "no frames"),
        (struct.pack("?Q", True, 1), "a peer that hangs up, got 1"),
        (struct.pack("?Q", False, MOST_ENTRIES + 1), "at most 4194304"),
        (struct.pack("?Q", False, 10**9), "at most"),
        (struct.pack("?q", False, -1), "18446744073709551615 frames"),
    ],
)
def test_prelude_that_cannot_be_is_refused(prelude: bytes, match: str) -> None:
    with pytest.raises(DataError, match=match) as refused:
        unpack_prelude(bytearray(prelude))
    assert "\n" not in str(refused.value)


def test_message_of_too_many_frames_is_not_sent() -> None:
    with pytest.raises(DataError, match="ask for fewer results"):
        pack_header([FrameKind.HOST] * (MOST_ENTRIES + 1), [1] * (MOST_ENTRIES + 1))


def test_header_of_another_length_is_refused() -> None:
    count, packed = pack_header([FrameKind.HOST], [5])
    for wrong in (b"", packed[:-1], packed + b"\0"):
        with pytest.raises(DataError, match="a header of 16 bytes for 1 entries"):
            unpack_header(wrong, count)


def test_header_with_something_in_its_padding_is_refused() -> None:
    count, packed = pack_header([FrameKind.HOST], [5])
    with pytest.raises(DataError, match="between its kinds and its sizes"):
        unpack_header(packed[:3] + b"\1" + packed[4:], count)


@pytest.mark.parametrize("kind", [FrameKind.HOST, FrameKind.DEVICE])
@pytest.mark.parametrize(
    "sizes", [(2**64 - 1,), (2**63, 2**63), (2**64 - 1, 2), (MOST_MESSAGE_BYTES, 1)]
)
def test_message_that_no_process_can_hold_is_refused(
    kind: FrameKind, sizes: tuple[int, ...]
) -> None:
    count, packed = pack_header([kind] * len(sizes), sizes)
    with pytest.raises(DataError, match="no process can hold"):
        unpack_header(packed, count)


def test_message_that_the_host_cannot_hold_is_refused_by_its_host_frames_alone() -> None:
    count, packed = pack_header([FrameKind.HOST, FrameKind.DEVICE, FrameKind.HOST], [60, 500, 41])
    assert unpack_header(packed, count, most_host_bytes=101).sizes == (60, 500, 41)
    with pytest.raises(DataError, match="101 B for the host, which has 100 B"):
        unpack_header(packed, count, most_host_bytes=100)


@pytest.mark.parametrize(
    ("kinds", "sizes", "match"),
    [
        ((6,), (1,), "kind 6, which ucxuvm does not know"),
        (
            (2,),
            (1,),
            "no size of chunks for its stream, or more than one",
        ),  # a stream without a chunk size
        (
            (0, 3),
            (1, 256),
            "no size of chunks for its stream, or more than one",
        ),  # a chunk size without a stream
        ((3, 2, 3), (256, 1, 256), "no size of chunks for its stream, or more than one"),
        ((4, 2, 5), (256, 1, 256), "no size of chunks for its stream, or more than one"),
        ((0, 5), (1, 256), "no size of chunks for its stream, or more than one"),
        ((2, 3), (1, 0), "chunks of 0 bytes"),
        ((2, 3), (1, 100), "chunks of 100 bytes"),
    ],
)
def test_header_that_cannot_be_is_refused(
    kinds: tuple[int, ...], sizes: tuple[int, ...], match: str
) -> None:
    n = len(kinds)
    with pytest.raises(DataError, match=match):
        unpack_header(struct.pack(n * "B" + n * "Q", *kinds, *sizes), n)


@st.composite
def messages(draw: st.DrawFn) -> tuple[list[FrameKind], list[int]]:
    each = draw(
        st.lists(
            st.tuples(
                st.sampled_from([FrameKind.HOST] * 3 + [FrameKind.STREAM]), st.integers(0, 900)
            ),
            min_size=1,
            max_size=12,
        )
    )
    return [kind for kind, _ in each], [size for _, size in each]


def _opening(kinds: list[FrameKind], sizes: list[int]) -> tuple[bytes, int]:
    """Return an opening and its entries; the bytes of each frame are its number."""
    entries, header = pack_header(kinds, sizes, 256 if FrameKind.STREAM in kinds else 0)
    inside = sizes[: frames_in_opening(kinds, sizes, entries)]
    prelude = pack_prelude(closing=False, entries=entries)
    return pack_opening(
        prelude, header, [bytes([n]) * size for n, size in enumerate(inside)]
    ), entries


@given(messages())
def test_opening_comes_back_as_it_was(message: tuple[list[FrameKind], list[int]]) -> None:
    kinds, sizes = message
    packed, entries = _opening(kinds, sizes)
    assert len(packed) <= OPENING_BYTES
    header, opened = unpack_opening(memoryview(packed.ljust(OPENING_BYTES, b"\0")), entries)
    assert (list(header.kinds), list(header.sizes)) == (kinds, sizes)
    assert [bytes(each) for each in opened] == [bytes([n]) * sizes[n] for n in range(len(opened))]
    # What is not in it is no host frame, or had no room.
    if (count := len(opened)) < len(kinds) and kinds[count] is FrameKind.HOST:
        assert len(packed) + sizes[count] > OPENING_BYTES


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:-1],  # what UCX does not tell: that there was less
        lambda packed: packed[:-4],
        lambda packed: packed + b"\1",
        lambda packed: packed.ljust(OPENING_BYTES - 1, b"\0") + b"\1",
        lambda packed: packed[:-1] + b"\7",
    ],
)
def test_opening_that_does_not_end_where_it_has_to_is_refused(
    damage: Callable[[bytes], bytes],
) -> None:
    packed, entries = _opening([FrameKind.HOST, FrameKind.HOST], [5, 300])
    with pytest.raises(DataError, match="does not end after"):
        unpack_opening(memoryview(damage(packed).ljust(OPENING_BYTES, b"\0")), entries)


def test_opening_has_an_array_with_its_columns_first_as_it_lies() -> None:
    array = np.asfortranarray(np.arange(12, dtype="u1").reshape(3, 4))
    for frame in (memoryview(array), memoryview(np.ascontiguousarray(array))):
        entries, header = pack_header([FrameKind.HOST], [frame.nbytes])
        packed = pack_opening(pack_prelude(closing=False, entries=entries), header, [frame])
        _, opened = unpack_opening(memoryview(packed.ljust(OPENING_BYTES, b"\0")), entries)
        assert bytes(opened[0]) == bytes(pickle.PickleBuffer(frame).raw())


def test_opening_has_a_header_of_as_many_entries_as_fit() -> None:
    most = max(filter(header_in_opening, range(1, 1000)))
    assert PRELUDE_BYTES + header_bytes(most) + 1 <= OPENING_BYTES
    assert PRELUDE_BYTES + header_bytes(most + 1) + 1 > OPENING_BYTES
    assert frames_in_opening([FrameKind.HOST] * (most + 1), [0] * (most + 1), most + 1) == 0


numbers = st.integers(0, 2**64 - 1)
names = st.builds(ChunkName, numbers, numbers)
ids = st.binary(min_size=16, max_size=16)
offers = st.builds(
    SlabOffer,
    ids,
    ids,
    ids,
    st.binary(min_size=64, max_size=64),
    st.integers(1, MOST_MESSAGE_BYTES),
)


@given(offers, names, st.booleans())
def test_what_is_said_of_pulling_comes_back_as_it_was(
    offer: SlabOffer, name: ChunkName, pulls: bool
) -> None:
    assert unpack_offer(pack_offer(offer)) == offer
    assert unpack_answer(pack_answer(pulls=pulls)) is pulls
    assert unpack_ready(pack_ready(name)) == name
    assert unpack_ready(pack_ready(None)) is None
    assert unpack_done(pack_done(name)) == name


@pytest.mark.parametrize("nbytes", [0, MOST_MESSAGE_BYTES + 1, 2**64 - 1])
def test_offer_of_a_slab_that_cannot_be_is_refused(nbytes: int) -> None:
    packed = pack_offer(SlabOffer(bytes(16), bytes(16), bytes(16), bytes(64), nbytes))
    with pytest.raises(DataError, match=f"slab of {nbytes} bytes"):
        unpack_offer(packed)


def test_offer_that_is_shown_does_not_tell_what_opens_it() -> None:
    offer = SlabOffer(bytes(16), bytes(16), bytes(16), b"secret".ljust(64), 256)
    assert "secret" not in f"{offer} {offer!r}"


@pytest.mark.parametrize(
    ("unpack", "message"),
    [
        (unpack_ready, pack_done(ChunkName(0, 0))),
        (unpack_ready, bytes(17)),
        (unpack_ready, pack_ready(None)[:-1] + b"\1"),
        (unpack_done, pack_ready(ChunkName(0, 0))),
        (unpack_done, bytes(17)),
        (unpack_answer, b"\0"),
        (unpack_answer, b"\xff"),
    ],
)
def test_message_that_says_something_else_of_pulling_is_refused(
    unpack: Callable[[bytes], object], message: bytes
) -> None:
    with pytest.raises(DataError, match=r"lost step|expected an answer"):
        unpack(message)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Prelude and header: distributed-ucxx's own where nothing is staged, and checked."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.comm.wire import (
    PRELUDE_BYTES,
    FrameKind,
    header_bytes,
    pack_header,
    pack_prelude,
    unpack_header,
    unpack_prelude,
)
from rmm_uvm.errors import DataError

frames = st.lists(st.tuples(st.booleans(), st.integers(0, 2**64 - 1)), max_size=20)


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


@given(frames, st.integers(1, 2**30).map(lambda n: n * 256))
def test_header_with_a_stream_comes_back_as_it_was(
    entries: list[tuple[bool, int]], chunk_bytes: int
) -> None:
    kinds = [FrameKind.STREAM if e[0] else FrameKind.HOST for e in entries] + [FrameKind.STREAM]
    sizes = [e[1] for e in entries] + [7]
    count, packed = pack_header(kinds, sizes, chunk_bytes)
    header = unpack_header(packed, count)
    assert (list(header.kinds), list(header.sizes)) == (kinds, sizes)
    assert header.chunk_bytes == chunk_bytes


def test_prelude_comes_back_as_it_was() -> None:
    assert unpack_prelude(pack_prelude(closing=True, entries=3)) == (True, 3)


@pytest.mark.parametrize(
    ("kinds", "sizes", "match"),
    [
        ((4,), (1,), "kind that wire version 1 does not have"),
        ((2,), (1,), "no size, or more than one"),  # a stream without a chunk size
        ((0, 3), (1, 256), "no size, or more than one"),  # a chunk size without a stream
        ((3, 2, 3), (256, 1, 256), "no size, or more than one"),
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

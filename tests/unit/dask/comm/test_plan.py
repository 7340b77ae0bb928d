# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks of a stream: every byte once, in order, where both ends expect it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.comm.plan import ALIGNMENT_BYTES, chunk_count, plan_stream
from rmm_uvm.errors import DataError

CHUNK = 1024
EDGES = [0, 1, 255, 256, 257, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 3]
sizes_lists = st.lists(st.one_of(st.sampled_from(EDGES), st.integers(0, 4000)), max_size=12)


@given(sizes_lists, st.integers(1, 9).map(lambda n: n * ALIGNMENT_BYTES))
def test_plan_of_any_frames_has_every_byte_once_and_in_order(
    sizes: list[int], chunk_bytes: int
) -> None:
    done = [0] * len(sizes)
    last = -1
    chunks = list(plan_stream(sizes, chunk_bytes))
    assert chunk_count(sizes, chunk_bytes) == len(chunks)
    for chunk in chunks:
        end = 0
        for piece in chunk.pieces:
            assert piece.frame >= last
            assert piece.frame_offset == done[piece.frame]
            assert piece.chunk_offset >= end
            assert piece.nbytes > 0
            last, end = piece.frame, piece.chunk_offset + piece.nbytes
            done[piece.frame] += piece.nbytes
        assert end == chunk.nbytes <= chunk_bytes
        assert chunk.pieces[0].chunk_offset == 0
    assert done == sizes


@given(sizes_lists)
def test_plan_of_any_frames_begins_each_at_a_multiple_and_fills_chunks(
    sizes: list[int],
) -> None:
    chunks = list(plan_stream(sizes, CHUNK))
    for number, chunk in enumerate(chunks):
        assert chunk.nbytes > CHUNK - ALIGNMENT_BYTES or number == len(chunks) - 1
        for piece in chunk.pieces:
            if piece.frame_offset == 0:
                assert (number * CHUNK + piece.chunk_offset) % ALIGNMENT_BYTES == 0


def test_plan_of_many_small_frames_needs_few_chunks() -> None:
    assert len(list(plan_stream([100] * 40, 10 * CHUNK))) == 1


def test_plan_of_nothing_has_no_chunk() -> None:
    assert list(plan_stream([], CHUNK)) == list(plan_stream([0, 0], CHUNK)) == []


@pytest.mark.parametrize("chunk_bytes", [0, -256, 100, 257])
def test_plan_with_an_odd_chunk_is_refused(chunk_bytes: int) -> None:
    with pytest.raises(DataError, match="multiple of 256"):
        list(plan_stream([1], chunk_bytes))


def test_plan_with_a_negative_size_is_refused() -> None:
    with pytest.raises(DataError, match="-1 bytes"):
        list(plan_stream([5, -1], CHUNK))


def test_plan_of_a_message_that_a_peer_made_up_is_not_made_beforehand() -> None:
    plans = plan_stream([1 << 47], ALIGNMENT_BYTES)
    assert next(plans).nbytes == ALIGNMENT_BYTES
    assert chunk_count([1 << 47], ALIGNMENT_BYTES) == (1 << 47) // ALIGNMENT_BYTES

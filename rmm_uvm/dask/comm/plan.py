# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How the frames of one message are laid out in a stream of chunks. Pure arithmetic.

Both ends compute the same plan from the sizes in the header, so the plan itself never travels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rmm_uvm.errors import DataError

__all__ = ["ALIGNMENT_BYTES", "Piece", "PlannedChunk", "chunk_count", "plan_stream"]

ALIGNMENT_BYTES = 256
"""Where a frame may begin in the stream; what cudaMalloc aligns to, so copies stay fast."""


class Piece(NamedTuple):
    """Bytes of one frame that travel in one chunk.

    Attributes
    ----------
    frame : int
        Its index among the sizes that were planned.
    frame_offset, chunk_offset : int
        Where the bytes lie in the frame, and in the chunk.
    nbytes : int
        How many; > 0.
    """

    frame: int
    frame_offset: int
    chunk_offset: int
    nbytes: int


class PlannedChunk(NamedTuple):
    """One chunk of the stream: the bytes of its message, and what they are.

    The message ends with the last piece, and the first begins with it: so one that has a single
    piece is a part of a frame and nothing else.
    """

    nbytes: int
    pieces: tuple[Piece, ...]

    @property
    def frame_bytes(self) -> int:
        """Bytes of frames in it: its own less what aligns them."""
        return sum(piece.nbytes for piece in self.pieces)


def chunk_count(sizes: Sequence[int], chunk_bytes: int) -> int:
    """Return how many chunks `plan_stream` gives for the same arguments.

    Examples
    --------
    >>> chunk_count([300, 1000], chunk_bytes=1024)
    2
    """
    end_bytes = 0
    for size in filter(None, sizes):
        end_bytes = -(-end_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES + size
    return -(-end_bytes // chunk_bytes)


def plan_stream(sizes: Sequence[int], chunk_bytes: int) -> Iterator[PlannedChunk]:
    """Lay frames one after the other and cut the result into chunks.

    A peer tells the sizes, so the plan is made as it is used: all of it could take more memory
    than the frames do.

    Parameters
    ----------
    sizes : sequence of int
        Of the frames, in bytes; empty frames take no place.
    chunk_bytes : int
        Size of a full chunk; a positive multiple of `ALIGNMENT_BYTES`.

    Yields
    ------
    PlannedChunk
        In the order in which they travel. None if all frames are empty.

    Raises
    ------
    DataError
        If `chunk_bytes` is not such a multiple, or a size is negative.

    Examples
    --------
    >>> for chunk in plan_stream([300, 1000], chunk_bytes=1024):
    ...     print(chunk.nbytes, [tuple(piece) for piece in chunk.pieces])
    1024 [(0, 0, 0, 300), (1, 0, 512, 512)]
    488 [(1, 512, 0, 488)]
    """
    if chunk_bytes <= 0 or chunk_bytes % ALIGNMENT_BYTES:
        raise DataError(
            f"chunks of {chunk_bytes} bytes: a positive multiple of {ALIGNMENT_BYTES} was expected"
        )
    pieces: list[Piece] = []
    used_bytes = 0  # of the chunk that is being filled
    for frame, size in enumerate(sizes):
        if size < 0:
            raise DataError(f"a frame of {size} bytes: a size is 0 or more")
        done_bytes = 0
        while done_bytes < size:
            start = -(-used_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            if start == chunk_bytes:
                yield PlannedChunk(used_bytes, tuple(pieces))
                pieces, start = [], 0
            nbytes = min(size - done_bytes, chunk_bytes - start)
            pieces.append(Piece(frame, done_bytes, start, nbytes))
            used_bytes, done_bytes = start + nbytes, done_bytes + nbytes
    if pieces:
        yield PlannedChunk(used_bytes, tuple(pieces))

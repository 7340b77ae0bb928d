# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A trace as a sequence of parts, each a chunk that has been decoded: for files of any length."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rmm_uvm._lib.trace import ChunkDecoder
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.trace.chunks import ChunkKind, Chunks, open_regular
from rmm_uvm.trace.compressed import Bytes
from rmm_uvm.trace.events import EVENT_DTYPE

__all__ = ["RawMark", "TracePart", "TraceParts", "open_parts"]

Rows: TypeAlias = np.ndarray[Any, np.dtype[np.void]]
RawMark: TypeAlias = tuple[int, int, int, str, str]
"""time_ns, thread, kind, name, name of the thread."""

_NO_EVENTS = np.empty(0, EVENT_DTYPE)
_NO_SAMPLES = np.empty(0, SAMPLE_DTYPE)


class TracePart(NamedTuple):
    """What one chunk holds, each in order of time."""

    events: Rows
    marks: list[RawMark]
    samples: Rows


class TraceParts:
    """Decodes an open trace; ends where it is cut off, and at the first damage.

    Attributes
    ----------
    facts, truncated, damaged, dropped
        As of `rmm_uvm.trace.Trace`; all but the first are known after iterating.
    """

    def __init__(self, file: Bytes, path: str | os.PathLike[str]) -> None:
        self._file = file
        self._chunks = Chunks(file, path)
        self.facts: Mapping[str, Any] = self._chunks.facts

    def __iter__(self) -> Iterator[TracePart]:
        decoder = ChunkDecoder()
        for kind, payload in self._chunks:
            wrong = None
            if kind == ChunkKind.EVENTS:
                raw, marks, wrong = decoder.events(payload)
                yield TracePart(np.frombuffer(raw, EVENT_DTYPE), marks, _NO_SAMPLES)
            elif kind == ChunkKind.SAMPLES:
                raw, wrong = decoder.samples(payload)
                yield TracePart(_NO_EVENTS, [], np.frombuffer(raw, SAMPLE_DTYPE))
            if wrong is not None:
                self.damage(wrong)
                return

    def damage(self, reason: str) -> None:
        """Note what is wrong with the latest part."""
        self._chunks.damage(reason)

    @property
    def position(self) -> tuple[int, int]:
        """How many bytes of the file have been read, and how many it has."""
        return self._file.file_position, self._file.file_bytes

    @property
    def truncated(self) -> bool:
        """The end is missing."""
        return self._chunks.truncated

    @property
    def damaged(self) -> str:
        """What is wrong and where."""
        return self._chunks.damaged

    @property
    def dropped(self) -> int:
        """Events that the writer could not record."""
        return self._chunks.dropped


@contextlib.contextmanager
def open_parts(path: str | os.PathLike[str]) -> Iterator[TraceParts]:
    """Open a trace, compressed or not. Raises as `rmm_uvm.trace.read`."""
    with open_regular(path, "the trace") as file:
        yield TraceParts(file, path)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a careful user writes in place of managed memory: frames on the host, copied in in turn."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np


class FramesByHand:
    """Frames of cuDF in pinned host memory, each copied to the device before it is used.

    Parameters
    ----------
    way : {"pinned", "buffered"}
        When a frame is copied: before it is used, or while the one before is worked on.
    """

    def __init__(self, way: Literal["pinned", "buffered"]) -> None:
        import cudf
        import cupy
        from rmm.allocators.cupy import rmm_cupy_allocator

        cupy.cuda.set_allocator(rmm_cupy_allocator)
        self._cudf, self._cupy = cudf, cupy
        self._beside = cupy.cuda.Stream(non_blocking=True) if way == "buffered" else None
        self._kept: list[dict[str, np.ndarray[Any, Any]]] = []
        self._coming: dict[int, dict[str, Any]] = {}

    def keep(self, frame: Any) -> None:
        """Copy the next frame to the host."""
        kept = {}
        for name in frame.columns:
            column = frame[name].values
            memory = self._cupy.cuda.alloc_pinned_memory(column.nbytes)
            kept[name] = np.frombuffer(memory, column.dtype, column.size)
            self._cupy.asnumpy(column, out=kept[name])
        self._kept.append(kept)

    def bring(self, number: int) -> Any:
        """Return a frame, and begin to copy the next one where that is done beside."""
        columns = self._coming.pop(number, None) or self._copied(number)
        if self._beside is not None:
            here = self._cupy.cuda.get_current_stream()
            here.wait_event(self._beside.record())
            self._beside.wait_event(here.record())  # what is copied over may still be used
            following = (number + 1) % len(self._kept)
            with self._beside:
                self._coming[following] = self._copied(following)
        return self._cudf.DataFrame(columns)

    def drop(self) -> None:
        """Let go of all."""
        self._kept, self._coming = [], {}

    def _copied(self, number: int) -> dict[str, Any]:
        """Copy a frame in the current stream."""
        columns = {}
        for name, array in self._kept[number].items():
            columns[name] = self._cupy.empty(array.size, array.dtype)
            columns[name].set(array)
        return columns

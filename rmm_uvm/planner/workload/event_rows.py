# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An array of events that grows, so that a recording of any length is never held twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.planner.workload.events import REPLAY_DTYPE

__all__ = ["EventRows"]

_LARGEST_STEP = 1 << 21  # rows, 64 MiB: the allocator moves pages then, not bytes


class EventRows:
    """Events in order, 32 bytes each and at most 64 MiB more.

    Examples
    --------
    >>> rows = EventRows()
    >>> rows.extend(np.zeros(3, REPLAY_DTYPE))
    >>> len(rows), len(rows.finished())
    (3, 3)
    """

    def __init__(self) -> None:
        self._rows = np.empty(1024, REPLAY_DTYPE)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def extend(self, rows: NDArray[np.void]) -> None:
        """Append events."""
        end = self._count + len(rows)
        if end > len(self._rows):
            step = min(len(self._rows), _LARGEST_STEP)
            # Nobody else has seen the array, so that it may move.
            self._rows.resize(max(end, len(self._rows) + step), refcheck=False)
        self._rows[self._count : end] = rows
        self._count = end

    def drop_kind(self, kind: int) -> None:
        """Take out all events of one kind, in place."""
        kept = 0
        for begin in range(0, self._count, _LARGEST_STEP):
            part = self._rows[begin : min(begin + _LARGEST_STEP, self._count)]
            part = part[part["kind"] != kind]
            self._rows[kept : kept + len(part)] = part
            kept += len(part)
        self._count = kept

    def finished(self) -> NDArray[np.void]:
        """Return the events, which nobody may write to from now on; call it once, at the end."""
        self._rows.resize(self._count, refcheck=False)
        self._rows.flags.writeable = False
        return self._rows

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes by direction and cause, out of what attribution recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rmm_uvm.recording.recorded import CAUSES, Recording

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DIRECTIONS", "CauseSeries", "of_device"]

DIRECTIONS = ("host_to_device", "device_to_host")

# A name that is part of no other comes last, so that "unknown" is not taken for what it is not.
_LONGEST_FIRST = sorted(CAUSES, key=len, reverse=True)


@dataclasses.dataclass(frozen=True)
class CauseSeries:
    """Totals of one device by direction and cause.

    Parameters
    ----------
    seconds : ndarray of float, shape (n_rows,)
        Since the monitor began.
    totals : mapping of str to mapping of str to ndarray of float, shape (n_rows,)
        Bytes: by direction, one of `DIRECTIONS`, and by cause.
    """

    seconds: NDArray[np.float64]
    totals: Mapping[str, Mapping[str, NDArray[np.float64]]]

    def last(self) -> dict[str, dict[str, int]]:
        """Return the bytes at the end, by direction and cause; causes of nothing are left out."""
        return {
            direction: {cause: int(t[-1]) for cause, t in by_cause.items() if t[-1] > 0}
            for direction, by_cause in self.totals.items()
        }


def of_device(recording: Recording, device_id: int) -> CauseSeries | None:
    """Return the causes of one device; None without attribution.

    Columns are known by their names, which hold a direction and a cause, such as
    ``host_to_device_eviction_bytes``; others are no concern of a report.
    """
    if not recording.causes or not recording.causes.get("rows"):
        return None
    columns = list(recording.causes["columns"])
    table: Any = np.array(recording.causes["rows"], dtype=np.float64)
    table = table[table[:, columns.index("device_id")] == device_id]
    if not len(table):
        return None
    totals: dict[str, dict[str, NDArray[np.float64]]] = {name: {} for name in DIRECTIONS}
    for position, column in enumerate(columns):
        direction = next((name for name in DIRECTIONS if name in column), None)
        if direction is None:
            continue
        rest = column.replace(direction, "")
        cause = next((name for name in _LONGEST_FIRST if name in rest), None)
        if cause is not None:
            totals[direction][cause] = table[:, position]
    return CauseSeries(table[:, columns.index("time_seconds")], totals)

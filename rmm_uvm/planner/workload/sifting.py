# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which recorded events can be replayed: what is passed over, and what makes a file unusable.

Recordings often begin in the middle of a run. So frees and touches of what is not known to be live
are passed over and counted; what contradicts itself is refused with the number of its record or
line.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.errors import DataError
from rmm_uvm.trace.events import EventFlag, EventKind

__all__ = ["HIGHEST_ADDRESS", "LARGEST_BYTES", "Passed", "Sieve"]

Rows: TypeAlias = np.ndarray[Any, np.dtype[np.void]]

LARGEST_BYTES = 8 << 40
"""The largest size of one range: more than any machine has of memory."""
HIGHEST_ADDRESS = 1 << 57
"""Addresses of processors have 57 bits at most."""


@dataclasses.dataclass
class Passed:
    """Events of one kind that were passed over: how many, and the first."""

    what: str
    count: int = 0
    first: int = 0

    def add(self, numbers: NDArray[np.int64]) -> None:
        """Count some more."""
        if len(numbers) and not self.count:
            self.first = int(numbers[0])
        self.count += len(numbers)


class Sieve:
    """Looks at events part by part.

    Parameters
    ----------
    path : Path
        For messages.
    unit : str
        What numbers count.
    """

    def __init__(self, path: Path, unit: str) -> None:
        self._path = path
        self._unit = unit
        self._unknown = Passed("frees of memory that was not live, allocated before or freed twice")
        self._strays = Passed(
            "touches of memory that was not live, in whole or in part, allocated before or freed"
        )
        self._failed = Passed("allocations that failed when it was recorded")
        self._set_back = Passed("times before the time of the event above")
        self._latest_ns = 0

    def kept(self, events: Rows, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which events can be replayed.

        Raises
        ------
        DataError
            If a range is larger or higher than any memory, an allocation overlaps another or a
            free has another size.
        """
        kinds, nbytes = events["kind"], events["bytes"]
        unknown = (kinds == EventKind.FREE) & (events["id"] < 0)
        failed = kinds == EventKind.ALLOCATE_FAILED
        kept: NDArray[np.bool_] = ~unknown & ~failed & (nbytes > 0)
        self._refuse_absurd(events, numbers, kept)
        self._refuse_contradiction(events, numbers)
        self._unknown.add(numbers[unknown & (nbytes > 0)])
        self._failed.add(numbers[failed])
        return kept

    def add_strays(self, numbers: NDArray[np.int64]) -> None:
        """Count touches of what is not live, or only in part."""
        self._strays.add(numbers)

    def times(self, times_ns: NDArray[np.uint64], numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return times that never go back."""
        latest = np.maximum.accumulate(np.append(np.uint64(self._latest_ns), times_ns))
        self._set_back.add(numbers[times_ns < latest[:-1]])
        self._latest_ns = int(latest[-1])
        return latest[1:]

    @property
    def latest_ns(self) -> int:
        """The latest time so far."""
        return self._latest_ns

    @property
    def remarks(self) -> list[str]:
        """Remarks on what was passed over, a line each."""
        return [
            f"{one.what}: {one.count} (the first is {self._unit} {one.first})"
            for one in (self._unknown, self._strays, self._failed, self._set_back)
            if one.count
        ]

    def _refuse_absurd(
        self, events: Rows, numbers: NDArray[np.int64], kept: NDArray[np.bool_]
    ) -> None:
        addresses, nbytes = events["address"], events["bytes"]
        # The last address of what is not too large does not run over.
        large = nbytes > LARGEST_BYTES
        absurd = np.flatnonzero(kept & (large | (addresses > HIGHEST_ADDRESS - LARGEST_BYTES)))
        if len(absurd):
            at = absurd[0]
            raise DataError(
                f"{self._unit} {numbers[at]} of {self._path} is of {nbytes[at]} bytes at "
                f"{int(addresses[at]):#x}, which no machine has: the file is damaged"
            )

    def _refuse_contradiction(self, events: Rows, numbers: NDArray[np.int64]) -> None:
        contradicting = np.flatnonzero(events["flags"])
        if len(contradicting):
            at = contradicting[0]
            where = f"{events['bytes'][at]} bytes at {int(events['address'][at]):#x}"
            said = (
                f"allocates {where} over memory that was not freed"
                if events["flags"][at] & EventFlag.OVERLAPS
                else f"frees {where}, where another size was allocated"
            )
            raise DataError(
                f"{self._unit} {numbers[at]} of {self._path} {said}: the recording lost events or "
                "is of several runs, and cannot be replayed"
            )

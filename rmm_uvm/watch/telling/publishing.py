# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a monitor puts on the board, and when."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.watch.snapshot import Snapshot
from rmm_uvm.watch.telling.board import Board

__all__ = ["Publisher"]

_EVERY_SECONDS = 1.0
_MOST_FINDINGS = 5


class Publisher:
    """A place on the board, if there is one to be had.

    Parameters
    ----------
    make_board : callable
        Makes the place.
    clock : callable
        Returns seconds.

    Attributes
    ----------
    available : Availability
        Whether figures are published.
    """

    def __init__(
        self,
        make_board: Callable[[], Board] = Board,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._last_seconds: float | None = None
        self._board: Board | None = None
        self.available = Availability(available=True)
        try:
            self._board = make_board()
        except AvailabilityError as error:
            self.available = Availability(available=False, reason=str(error))

    @property
    def due(self) -> bool:
        """Whether it is time to publish again."""
        last = self._last_seconds
        return self._board is not None and (last is None or self._clock() - last >= _EVERY_SECONDS)

    def publish(
        self,
        *,
        interval_seconds: float,
        devices: Sequence[RecordedDevice],
        snapshots: Sequence[Snapshot],
        sources: Mapping[str, Availability],
        findings: Sequence[Finding],
    ) -> None:
        """Replace what is on the board. What goes wrong is said by `available`."""
        if self._board is None:
            return
        self._last_seconds = self._clock()
        figures: dict[str, Any] = {
            "interval_seconds": interval_seconds,
            "devices": [dataclasses.asdict(facts) for facts in devices],
            "snapshots": [snapshot.to_dict() for snapshot in snapshots],
            "sources": {name: source.reason for name, source in sources.items()},
            "findings": [str(finding) for finding in findings[-_MOST_FINDINGS:]],
        }
        try:
            self._board.publish(figures)
        except AvailabilityError as error:
            self.available = Availability(available=False, reason=str(error))
        else:
            self.available = Availability(available=True)

    def close(self) -> None:
        """Take it off the board."""
        if self._board is not None:
            self._board.remove()
        self._board = None

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What each stage of the pipeline did to device memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

_NS_PER_SECOND = 1_000_000_000


class Footprint:
    """Counts live bytes and their peak.

    Notes
    -----
    Bytes are those requested, before a resource rounds them up.
    """

    def __init__(self) -> None:
        self.now_bytes = 0
        self.peak_bytes = 0

    def add(self, nbytes: int) -> None:
        """Count an allocation."""
        self.now_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.now_bytes)

    def remove(self, nbytes: int) -> None:
        """Count a free."""
        self.now_bytes -= nbytes

    def begin_stage(self) -> None:
        """Let the peak start from what is live now."""
        self.peak_bytes = self.now_bytes


class CountingDevice(Protocol):
    """What the meter needs of a simulated device."""

    def statistics(self) -> dict[str, int]:
        """Return everything counted so far, in bytes, counts and nanoseconds."""


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage, as it ended.

    Parameters
    ----------
    name : str
        Name of the stage.
    begin_bytes, peak_bytes, end_bytes : int
        Footprint when the stage began, at most, and when it ended.
    host_to_device_bytes, device_to_host_bytes : int
        Bytes that migrated during the stage; 0 if memory is not simulated.
    modelled_seconds : float
        Time that the simulated driver took for migration and faults; 0.0 if not simulated.
    """

    name: str
    begin_bytes: int
    peak_bytes: int
    end_bytes: int
    host_to_device_bytes: int
    device_to_host_bytes: int
    modelled_seconds: float


class StageMeter:
    """Observer that reports on every stage of an engine.

    Parameters
    ----------
    footprint : Footprint
        The engine's.
    device : CountingDevice or None
        Simulated device, asked at both ends of a stage; None leaves its columns zero.

    Attributes
    ----------
    reports : list of StageReport
        In the order in which stages ended. A stage that ran out of memory is the last one.
    """

    def __init__(self, footprint: Footprint, device: CountingDevice | None = None) -> None:
        self.reports: list[StageReport] = []
        self._footprint = footprint
        self._device = device
        self._begin_bytes = 0
        self._before: dict[str, int] = {}

    def begin(self, name: str) -> None:
        """Note that a stage begins; stages do not nest."""
        del name
        self._footprint.begin_stage()
        self._begin_bytes = self._footprint.now_bytes
        self._before = self._statistics()

    def end(self, name: str) -> None:
        """Add the stage's report."""
        before, after = self._before, self._statistics()

        def moved(counter: str) -> int:
            return after.get(counter, 0) - before.get(counter, 0)

        self.reports.append(
            StageReport(
                name,
                self._begin_bytes,
                self._footprint.peak_bytes,
                self._footprint.now_bytes,
                moved("host_to_device_bytes"),
                moved("device_to_host_bytes"),
                moved("modelled_ns") / _NS_PER_SECOND,
            )
        )

    def _statistics(self) -> dict[str, int]:
        return {} if self._device is None else self._device.statistics()

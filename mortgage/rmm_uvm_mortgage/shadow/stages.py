# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Measures what each stage of the pipeline did to device memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import rmm.mr

    from rmm_uvm.drivers import UvmDriver
    from rmm_uvm.mr import UvmResourceAdaptor

_NS_PER_SECOND = 1_000_000_000


class FootprintSource(Protocol):
    """Live bytes now and at most since `begin_stage`, as requested, before rounding."""

    @property
    def now_bytes(self) -> int:
        """Live bytes."""

    @property
    def peak_bytes(self) -> int:
        """Largest sum of live bytes since `begin_stage`."""

    def begin_stage(self) -> None:
        """Let the peak start from what is live now."""


class Footprint:
    """Counts the live bytes of a shadow engine."""

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


class ResourceFootprint:
    """Live bytes of any engine that allocates through RMM's statistics adaptor.

    With it a `StageMeter` measures the cuDF engine on a GPU as it measures the shadow engine.

    Parameters
    ----------
    statistics : rmm.mr.StatisticsResourceAdaptor
        Outermost resource of the engine; nobody else pushes or pops its counters.
    """

    def __init__(self, statistics: rmm.mr.StatisticsResourceAdaptor) -> None:
        self._statistics = statistics
        self._base_bytes = int(statistics.allocation_counts.current_bytes)
        statistics.push_counters()

    @property
    def now_bytes(self) -> int:
        """Live bytes."""
        return self._base_bytes + int(self._statistics.allocation_counts.current_bytes)

    @property
    def peak_bytes(self) -> int:
        """Largest sum of live bytes since `begin_stage`."""
        return self._base_bytes + int(self._statistics.allocation_counts.peak_bytes)

    def begin_stage(self) -> None:
        """Let the peak start from what is live now: the adaptor's new counters start at zero."""
        self._base_bytes = self.now_bytes
        self._statistics.pop_counters()
        self._statistics.push_counters()


class PoolFootprint:
    """Live bytes of an installed managed pool, whoever allocates from it.

    Parameters
    ----------
    pool : UvmResourceAdaptor
        Nobody else resets its peak.
    """

    def __init__(self, pool: UvmResourceAdaptor) -> None:
        self._pool = pool

    @property
    def now_bytes(self) -> int:
        """Live bytes."""
        return self._pool.get_allocated_bytes()

    @property
    def peak_bytes(self) -> int:
        """Largest sum of live bytes since `begin_stage`."""
        return self._pool.peak_bytes

    def begin_stage(self) -> None:
        """Let the peak start from what is live now."""
        self._pool.reset_peak()


class CountingDevice(Protocol):
    """The part of a simulated device that the meter needs."""

    def statistics(self) -> dict[str, int]:
        """Return everything counted so far, in bytes, counts and nanoseconds."""


class MigrationCounters:
    """Gives a GPU's counters the shape that `StageMeter` reads.

    Parameters
    ----------
    driver : UvmDriver
        Of the GPU.
    """

    def __init__(self, driver: UvmDriver) -> None:
        self._driver = driver

    def statistics(self) -> dict[str, int]:
        """Return the bytes that migrated so far, by direction."""
        host_to_device_bytes, device_to_host_bytes = self._driver.migrated_bytes()
        return {
            "host_to_device_bytes": host_to_device_bytes,
            "device_to_host_bytes": device_to_host_bytes,
        }


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
    footprint : FootprintSource
        The engine's.
    device : CountingDevice or None
        Simulated device, asked at both ends of a stage; None leaves its columns zero.

    Attributes
    ----------
    reports : list of StageReport
        In the order in which stages ended. A stage that ran out of memory is the last one.
    """

    def __init__(self, footprint: FootprintSource, device: CountingDevice | None = None) -> None:
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

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated device that is sampled when a test says so, and advised about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.watch.advisor import Advisor
from rmm_uvm.watch.judging.thresholds import Thresholds
from rmm_uvm.watch.telling.delivery import Delivery

_FULL_FRACTION = 0.02
_ALL = Known.COUNTERS | Known.FOOTPRINT | Known.DEVICE | Known.RESIDENT | Known.RESIDENT_EXACT


def no_prefetches() -> tuple[int, int]:
    """Return prefetched and discarded bytes of a resource that does neither."""
    return 0, 0


def prefetches_of(mr: Any) -> Callable[[], tuple[int, int]]:
    """Return a function that tells prefetched and discarded bytes of a resource of ours."""

    def read() -> tuple[int, int]:
        counted = mr.statistics()
        return counted["prefetched_bytes"], counted["discarded_bytes"]

    return read


class WatchedDevice:
    """Samples a device by the sampler's rules, in a time that passes by ticks.

    Parameters
    ----------
    device : SimulatedDevice
        The device.
    footprint : callable
        Returns the bytes allocated and not freed.
    prefetches : callable
        Returns prefetched and discarded bytes.
    prefetch : str or None
        Mode of the resource.
    """

    def __init__(
        self,
        device: SimulatedDevice,
        footprint: Callable[[], int],
        prefetches: Callable[[], tuple[int, int]] = no_prefetches,
        *,
        prefetch: str | None = None,
        thresholds: Thresholds | None = None,
    ) -> None:
        _, total_bytes = device.memory()
        self.device = device
        self.total_bytes = total_bytes
        self.facts = RecordedDevice(0, "simulated", "", total_bytes, total_bytes, simulated=True)
        self.advisor = Advisor(
            self,
            [self.facts],
            Delivery(None),
            thresholds=thresholds,
            prefetch=lambda device_id: prefetch,
        )
        self.own_to_host_bytes = 0
        self._footprint = footprint
        self._prefetches = prefetches
        self._rows: list[tuple[int, ...]] = []
        self._time_ns = 0
        self._moved = self._began = device.migrated_bytes()
        self._own_before = 0
        self._full_before = False
        self._evicted_bytes = 0

    def tick(self, seconds: float = 0.1) -> None:
        """Let time pass and take a sample."""
        self._time_ns += round(seconds * 1e9)
        levels = self.device.statistics()
        free_bytes, _ = self.device.memory()
        moved = self.device.migrated_bytes()
        full = free_bytes < _FULL_FRACTION * self.total_bytes
        if full or self._full_before:
            own = self.own_to_host_bytes - self._own_before
            self._evicted_bytes += max(0, moved[1] - self._moved[1] - own)
        self._moved, self._full_before = moved, full
        self._own_before = self.own_to_host_bytes
        prefetched_bytes, discarded_bytes = self._prefetches()
        self._rows.append(
            (
                self._time_ns,
                moved[0] - self._began[0],
                moved[1] - self._began[1],
                self.own_to_host_bytes,
                self._evicted_bytes,
                prefetched_bytes,
                discarded_bytes,
                0,
                0,
                self._footprint(),
                levels["managed_bytes"],
                levels["resident_bytes"],
                self.total_bytes - free_bytes,
                0,  # no budget that requests wait for
                0,
                int(_ALL),
            )
        )

    def samples(self, since_sequence: int = 0, /) -> tuple[np.ndarray[Any, Any], int, int]:
        """Return the samples from a number on, as the sampler does."""
        return np.array(self._rows[since_sequence:], SAMPLE_DTYPE), len(self._rows), 0

    def findings(self) -> tuple[Finding, ...]:
        """Return what there is to say about all samples so far."""
        self.advisor.look()
        assert self.advisor.failures == ()
        return self.advisor.findings

    def kinds(self) -> list[str]:
        """Return the kinds of all findings so far, in order."""
        return [finding.kind for finding in self.findings()]

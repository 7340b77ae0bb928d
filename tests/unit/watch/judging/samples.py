# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Samples made by hand, for tests of the policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.watch.judging.context import Context
from rmm_uvm.watch.judging.policy import PolicyState, evaluate
from rmm_uvm.watch.judging.thresholds import Thresholds

GIB = 1 << 30
DEVICE = RecordedDevice(0, "GPU", "GPU-0", total_bytes=16 * GIB, capacity_bytes=16 * GIB)
EXACT = Known.COUNTERS | Known.FOOTPRINT | Known.DEVICE | Known.RESIDENT | Known.RESIDENT_EXACT


class Samples:
    """Builds samples one after the other: levels stay, totals grow."""

    def __init__(self, known: int = EXACT, **levels: int) -> None:
        self._values: dict[str, int] = {"time_ns": 0, "known": known, **levels}
        self._rows: list[tuple[int, ...]] = []

    def add(self, count: int = 1, seconds: float = 0.1, **changes: int) -> Samples:
        """Add samples; names in ``_bytes`` that are totals grow by what is given."""
        for _ in range(count):
            self._values["time_ns"] += round(seconds * 1e9)
            for name, value in changes.items():
                total = name in TOTALS
                self._values[name] = value + (self._values.get(name, 0) if total else 0)
            self._rows.append(tuple(self._values.get(n, 0) for n in SAMPLE_DTYPE.names or ()))
        return self

    def array(self) -> np.ndarray[Any, Any]:
        return np.array(self._rows, SAMPLE_DTYPE)

    def findings(self, thresholds: Thresholds | None = None, **context: Any) -> tuple[Finding, ...]:
        device = context.pop("device", DEVICE)
        return evaluate(
            PolicyState(), self.array(), Context(device, **context), thresholds or Thresholds()
        )[1]

    def kinds(self, thresholds: Thresholds | None = None, **context: Any) -> list[str]:
        return [finding.kind for finding in self.findings(thresholds, **context)]


TOTALS = {
    "host_to_device_bytes",
    "device_to_host_bytes",
    "evicted_bytes_estimate",
    "prefetched_bytes",
    "discarded_bytes",
}
# 20 GiB of managed memory on a full device of 16.
OVER = {
    "footprint_bytes": 20 * GIB,
    "managed_bytes": 20 * GIB,
    "resident_bytes": 16 * GIB,
    "device_used_bytes": 16 * GIB,
}
EVICTING = {"evicted_bytes_estimate": GIB, "device_to_host_bytes": GIB}
QUIET = Thresholds(footprint_factor=None)

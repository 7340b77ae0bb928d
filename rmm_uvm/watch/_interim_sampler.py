# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A sampler in Python with the interface of the compiled one, which replaces it. Interim."""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rmm_uvm.drivers import SimulatedDevice, UvmDriver
from rmm_uvm.watch.sample import SAMPLE_DTYPE, Known

_FULL_FRACTION = 0.02


@dataclasses.dataclass
class Slot:
    """One watched device."""

    device_id: int
    driver: UvmDriver | None = None
    capacity_bytes: int = 0
    faults: bool = False


class Sampler:
    """Takes samples from a thread of its own."""

    def __init__(
        self,
        slots: list[Slot],
        interval_ns: int,
        capacity: int,
        clock: Any = None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._slots = slots
        self._interval_seconds = interval_ns / 1e9
        self._rows: collections.deque[Any] = collections.deque(maxlen=capacity)
        self._taken = 0
        self._external: dict[int, tuple[int, int]] = {}
        self._last: dict[int, Any] = {}
        self._base = {s.device_id: self._counters(s) for s in slots}
        self._began = time.monotonic_ns()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.on_tick = on_tick
        self._thread: threading.Thread | None = None
        self.cost_seconds = 0.0

    def start(self) -> None:
        """Begin."""
        self.sample_now()
        self._thread = threading.Thread(target=self._run, name="rmm_uvm sample", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_seconds):
            self.sample_now()
            self.on_tick()

    @staticmethod
    def _counters(slot: Slot) -> tuple[int, int]:
        return (0, 0) if slot.driver is None else slot.driver.migrated_bytes()

    def sample_now(self) -> None:
        """Take one sample of every device."""
        with self._lock:
            for slot in self._slots:
                self._rows.append(self._sample(slot))
                self._taken += 1

    def _sample(self, slot: Slot) -> Any:
        row = np.zeros((), SAMPLE_DTYPE)
        row["time_ns"] = time.monotonic_ns() - self._began
        row["device_id"] = slot.device_id
        known = Known(0)
        if slot.driver is not None:
            base = self._base[slot.device_id]
            h2d, d2h = slot.driver.migrated_bytes()
            row["host_to_device_bytes"], row["device_to_host_bytes"] = h2d - base[0], d2h - base[1]
            known |= Known.COUNTERS if slot.driver.counters_available() else Known(0)
            free, total = slot.driver.memory()
            row["device_used_bytes"] = total - free
            known |= Known.DEVICE
            last = self._last.get(slot.device_id)
            if last is not None:
                full = min(free, total - int(last["device_used_bytes"])) < _FULL_FRACTION * total
                left = int(row["device_to_host_bytes"]) - int(last["device_to_host_bytes"])
                evicted = int(last["evicted_bytes_estimate"]) + (left if full else 0)
                row["evicted_bytes_estimate"] = evicted
            if isinstance(slot.driver, SimulatedDevice):
                row["resident_bytes"] = slot.driver.statistics()["resident_bytes"]
                known |= Known.RESIDENT | Known.RESIDENT_EXACT
        if slot.device_id in self._external:
            row["footprint_bytes"], row["managed_bytes"] = self._external[slot.device_id]
            known |= Known.FOOTPRINT
        row["known"] = int(known)
        self._last[slot.device_id] = row
        return row

    def samples(self, since_sequence: int = 0) -> tuple[Any, int, int]:
        """Return what is newer, the next sequence number, and how many were lost."""
        with self._lock:
            first = self._taken - len(self._rows)
            rows = list(self._rows)[max(since_sequence - first, 0) :]
            array = np.array(rows, SAMPLE_DTYPE) if rows else np.empty(0, SAMPLE_DTYPE)
            return array, self._taken, max(first - since_sequence, 0)

    def set_levels(self, device_id: int, source: Any) -> None:
        """Set where the levels come from."""

    def set_external_footprint(
        self, device_id: int, footprint_bytes: int, managed_bytes: int
    ) -> None:
        """Set the levels."""
        self._external[device_id] = (footprint_bytes, managed_bytes)

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a sample."""
        return not self._stop.wait(min(timeout_seconds, self._interval_seconds))

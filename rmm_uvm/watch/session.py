# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One run of a monitor, from its start to its stop: what is opened, and closed again.

The threads of a run know the session and never the `Monitor`, so that a monitor which is dropped
can be collected, and then stops.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rmm_uvm.device_info import Availability
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.watch import stages
from rmm_uvm.watch.board import Board
from rmm_uvm.watch.chain import WatchedChain
from rmm_uvm.watch.finding import Finding
from rmm_uvm.watch.recording import DeviceFacts
from rmm_uvm.watch.sample import SAMPLE_DTYPE
from rmm_uvm.watch.settings import MonitorSettings
from rmm_uvm.watch.snapshot import Snapshot, snapshot_of
from rmm_uvm.watch.sources import devices_to_watch, of_all, of_any, open_device

try:
    from rmm_uvm._lib.monitor import Sampler, Slot
except ImportError:
    from rmm_uvm.watch._interim_sampler import Sampler, Slot

if TYPE_CHECKING:
    from rmm_uvm.watch.recording import Stage

__all__ = ["Session"]

_PUBLISH_SECONDS = 1.0
_NOT_ASKED_FOR = Availability(available=False, reason="not asked for")
_AVAILABLE = Availability(available=True)
Samples = np.ndarray[Any, np.dtype[np.void]]


class Session:
    """Opens everything that a monitor watches with, and closes it.

    Parameters
    ----------
    settings : MonitorSettings
        What to do.
    clock : FakeClock or None
        For tests.
    """

    def __init__(self, settings: MonitorSettings, clock: Any = None) -> None:
        self.settings = settings
        self.running = False
        self.began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._pid = os.getpid()
        self._clock = clock
        self._close = contextlib.ExitStack()
        self._sampler: Any = None
        self._samples: Samples = np.empty(0, SAMPLE_DTYPE)
        self._lost = 0
        self._cost_seconds = 0.0
        self._published_seconds = 0.0
        self._board: Board | None = None
        self._board_source = Availability(available=False, reason="switched off")
        self._open()

    def _open(self) -> None:
        settings = self.settings
        opened = [open_device(i, settings.driver) for i in devices_to_watch(settings.devices)]
        self.devices: tuple[DeviceFacts, ...] = tuple(device.facts for device in opened)
        self._fixed_sources = {
            "kernel_counters": of_all(device.counters for device in opened),
            "device_memory": of_all(device.memory for device in opened),
        }
        slots = [
            Slot(
                device.facts.device_id,
                device.driver,
                capacity_bytes=device.facts.capacity_bytes,
                faults=settings.faults,
            )
            for device in opened
        ]
        self._sampler = Sampler(
            slots,
            round(settings.interval_seconds * 1e9),
            settings.history * len(slots),
            self._clock,
        )
        self.chains = tuple(WatchedChain(facts.device_id, self._sampler) for facts in self.devices)
        if settings.publish:
            self._open_board()
        for chain in self.chains:
            chain.refresh()
        self._began_seconds = self._now_seconds()
        self.log = stages.StageLog(lambda: self._now_seconds() - self._began_seconds)
        if hasattr(self._sampler, "on_tick"):  # the interim one
            self._sampler.on_tick = self.round
        self._sampler.start()
        stages.subscribe(self.log)
        self.running = True

    def _now_seconds(self) -> float:
        return time.monotonic() if self._clock is None else float(self._clock.now_seconds)

    def _open_board(self) -> None:
        try:
            self._board = Board()
            self._board_source = _AVAILABLE
        except AvailabilityError as error:
            self._board_source = Availability(available=False, reason=str(error))

    def round(self) -> None:
        """Look at what changes slowly: chains, and the board. Run before each look."""
        for chain in self.chains:
            chain.refresh()
        self._publish()

    def close(self) -> None:
        """Stop watching; what was recorded stays. Idempotent."""
        if not self.running:
            return
        self.running = False
        stages.unsubscribe(self.log)
        if os.getpid() != self._pid:
            return
        self._sampler.sample_now()
        self._sampler.stop()
        if self._board is not None:
            self._board.remove()
        self._samples, _, self._lost = self._sampler.samples()
        self._cost_seconds = self.cost_seconds
        self._sampler = None

    def samples(self) -> tuple[Samples, int]:
        """Return the samples that are kept, and how many were lost."""
        sampler = self._sampler
        if sampler is None:
            return self._samples, self._lost
        found, _, lost = sampler.samples()
        return found, lost

    def snapshot(self, device_id: int, *, fresh: bool = True) -> Snapshot:
        """Return the newest sample of a device, one of this moment if `fresh` and running."""
        sampler = self._sampler
        if sampler is not None and fresh:
            self.chain_of(device_id).refresh()
            sampler.sample_now()
        rows, _ = self.samples()
        rows = rows[rows["device_id"] == device_id]
        if not len(rows):
            raise AvailabilityError(f"device {device_id} has no sample yet")
        return snapshot_of(
            rows[-1],
            self.facts_of(device_id),
            prefetch_skipped=self.chain_of(device_id).prefetch_skipped,
        )

    def facts_of(self, device_id: int) -> DeviceFacts:
        """Return the facts of a watched device."""
        return next(facts for facts in self.devices if facts.device_id == device_id)

    def chain_of(self, device_id: int) -> WatchedChain:
        """Return the chain of a watched device."""
        return next(chain for chain in self.chains if chain.device_id == device_id)

    @property
    def sources(self) -> Mapping[str, Availability]:
        """All sources, and why some are not there."""
        return {
            **self._fixed_sources,
            "faults": _NOT_ASKED_FOR,
            "own_resources": of_any(chain.own for chain in self.chains),
            "rmm_chain": of_any(chain.foreign for chain in self.chains),
            "nvml": Availability(available=False, reason="not asked for"),
            "cupti": _NOT_ASKED_FOR,
            "board": self._board_source,
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far."""
        return ()

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages that were noted."""
        return self.log.stages()

    @property
    def cost_seconds(self) -> float:
        """Processor time that watching took."""
        sampler = self._sampler
        return self._cost_seconds if sampler is None else float(sampler.cost_seconds)

    def _publish(self) -> None:
        now = time.monotonic()
        if self._board is None or now - self._published_seconds < _PUBLISH_SECONDS:
            return
        self._published_seconds = now
        import dataclasses

        snapshots = [self.snapshot(facts.device_id, fresh=False) for facts in self.devices]
        try:
            self._board.publish(
                {
                    "interval_seconds": self.settings.interval_seconds,
                    "devices": [dataclasses.asdict(facts) for facts in self.devices],
                    "snapshots": [snapshot.to_dict() for snapshot in snapshots],
                    "sources": {name: source.reason for name, source in self.sources.items()},
                    "findings": [str(finding) for finding in self.findings[-5:]],
                }
            )
        except AvailabilityError as error:
            self._board_source = Availability(available=False, reason=str(error))

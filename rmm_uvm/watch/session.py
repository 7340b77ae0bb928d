# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One run of a monitor, from its start to its stop: what is opened, and closed again.

The threads of a run know the session and never the `Monitor`, so that a monitor which is dropped
can be collected, and then stops.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.monitor import FakeClock, Sampler
from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm._lib.own_threads import OwnThread
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.process_facts import about_command
from rmm_uvm.recording import recorded
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.recording.sample import Known
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.support.off_switch import is_off
from rmm_uvm.support.requirements import installed_packages
from rmm_uvm.watch import stages
from rmm_uvm.watch.advisor import Advisor
from rmm_uvm.watch.sampling import sources
from rmm_uvm.watch.sampling.chain import WatchedChain
from rmm_uvm.watch.sampling.lines import WatchedLines
from rmm_uvm.watch.sampling.run_samples import RunSamples, Samples
from rmm_uvm.watch.sampling.sources import WatchedDevice
from rmm_uvm.watch.sampling.tracing import Tracing
from rmm_uvm.watch.settings import MonitorSettings
from rmm_uvm.watch.snapshot import Snapshot, snapshot_of
from rmm_uvm.watch.telling.board import Publisher
from rmm_uvm.watch.telling.delivery import Delivery

if TYPE_CHECKING:
    from rmm_uvm.watch.sampling.attribution import Attribution

__all__ = ["Session", "driver_version", "versions"]

_PACKAGES = ("rmm-uvm", "rmm", "cudf", "cupy")  # and with the CUDA major in the name


def driver_version(watched: Iterable[WatchedDevice]) -> str:
    """Return the CUDA version of the driver, such as "13.0"; empty if no GPU is watched."""
    infos = [device.driver.info for device in watched if device.driver is not None]
    number = next((info.driver_version for info in infos if not info.simulated), 0)
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def _about_process() -> dict[str, str]:
    """Return what `Recording.about` says of this process; of a notebook or a prompt no program."""
    has_file = hasattr(sys.modules.get("__main__"), "__file__")
    return about_command(sys.orig_argv if has_file else [])


def versions(driver: str = "") -> dict[str, str]:
    """Return versions by name, of those that are there."""
    installed = {
        package: version
        for package, version in installed_packages().items()
        if re.sub(r"-cu(da)?\d+x?$", "", package) in _PACKAGES
    }
    found = {"python": platform.python_version(), **installed}
    return {**found, "CUDA driver": driver} if driver else found


_OF_DEVICE = Known.COUNTERS | Known.FAULTS | Known.DEVICE  # what is read of it, and not of a pool
_PATIENCE_SECONDS = 5.0  # with a callback that blocks, when the interpreter exits


class Session:
    """Opens everything that a monitor watches with, and closes it.

    Parameters
    ----------
    settings : MonitorSettings
        What to do.
    clock : FakeClock or None
        For tests.

    Raises
    ------
    ConfigurationError, DataError
        If the trace cannot be written. Nothing is left open then, as after any other error.

    Notes
    -----
    Reading is thread-safe, also while it is closed.
    """

    def __init__(self, settings: MonitorSettings, clock: FakeClock | None = None) -> None:
        self.settings = settings
        self._running = False
        self.began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._clock = clock
        self._attribution: Attribution | None = None
        self._publisher: Publisher | None = None
        self._tracing: Tracing | None = None
        self._lines: WatchedLines | None = None
        self._moved_devices: set[int] = set()
        self._run_id = os.urandom(8).hex()  # tells snapshots of other runs apart
        self._pid = os.getpid()
        self._closing = threading.Lock()  # who gets it closes; never released
        self._closing_thread: int | None = None
        self._closed = threading.Event()
        self._patience_seconds: float | None = None
        with contextlib.ExitStack() as opened:
            self._open(opened)
            self._opened = opened.pop_all()

    def _open(self, opened: contextlib.ExitStack) -> None:
        """Open everything; `opened` closes it in the opposite order."""
        settings = self.settings
        self._off = off = is_off()
        if off:  # it can be asked for everything, and has seen nothing
            watched = sources.off_devices(settings.devices)
        else:
            watched = sources.open_devices(settings.devices, settings.driver)
        self._watched = {device.facts.device_id: device for device in watched}
        self.devices: tuple[RecordedDevice, ...] = tuple(device.facts for device in watched)
        self._driver_version = driver_version(watched)
        if settings.lines and not off:
            # Before the first sample: windows move memory to see that they work.
            self._lines = WatchedLines({i: device.driver for i, device in self._watched.items()})
            opened.callback(self._lines.close)
            self._lines.begin()
        sampler = Sampler(
            [sources.slot_of(device, faults=settings.faults) for device in watched],
            round(settings.interval_seconds * 1e9),
            settings.history * len(watched),
            self._clock,
        )
        self._samples = RunSamples(
            sampler, len(watched), settings.interval_seconds, self.elapsed_seconds
        )
        self._began_seconds = self._now_seconds()
        sampler.sample_now()  # its time begins with this; stages and traces count from the same
        if settings.trace is not None:  # first of all that has an effect: it may be refused
            origin_ns = None if self._clock else round(self._began_seconds * 1e9)
            self._tracing = Tracing(
                settings.trace,
                self.devices,
                [device.driver for device in watched if device.driver is not None],
                settings.described(),
                versions(self._driver_version),
                origin_ns,
            )
            opened.callback(self._tracing.close)
        self._chains = {
            facts.device_id: WatchedChain(facts.device_id, sampler, self._observe)
            for facts in self.devices
        }
        opened.callback(self._keep)
        opened.callback(sampler.stop)
        for chain in self._chains.values():
            chain.refresh()
        if settings.attribution and not off:
            from rmm_uvm.watch.sampling.attribution import Attribution

            self._attribution = attribution = Attribution(
                {i: d.driver for i, d in self._watched.items() if d.driver is not None}
            )
            opened.callback(lambda: attribution.stop(self.elapsed_seconds()))
        if settings.publish and not off:
            self._publisher = Publisher()
            opened.callback(self._publisher.close)
        if not off:
            sampler.start()
        self._fixed_sources = sources.fixed_sources(watched, sampler, faults=settings.faults)
        self._advisor = Advisor(
            self,  # and not the sampler, which is let go of in the end
            self.devices,
            Delivery(settings.on_finding, settings.others_warn),
            thresholds=settings.thresholds,
            prefetch=lambda device_id: self._chains[device_id].prefetch,
            budget=lambda device_id: self._chains[device_id].budget,
            told_of_budget=lambda device_id: self._chains[device_id].told_of_budget(),
            interval_seconds=settings.interval_seconds,
            sources=lambda: self.sources,
            on_round=[self.round],
        )
        if (tracing := self._tracing) is not None:  # once more after the last look
            opened.callback(lambda: tracing.flush(sampler, self.findings))
        opened.callback(lambda: self._advisor.stop(self._patience_seconds))
        if not off:
            self._advisor.start()
        opened.callback(sampler.sample_now)  # the last one, for the last look
        writer = None if self._tracing is None else self._tracing.writer
        self._stages = stages.StageLog(
            self.elapsed_seconds, writer=writer, edge=self._samples.sample_edge
        )
        stages.subscribe(self._stages)
        opened.callback(stages.unsubscribe, self._stages)
        self._running = True

    @property
    def running(self) -> bool:
        """Whether it watches now; never in a forked child, where its threads are not."""
        return self._running and os.getpid() == self._pid

    def close(self, patience_seconds: float | None = None) -> None:
        """Stop watching; what was recorded stays. Idempotent.

        If another thread is closing, this waits for it. A callback does not: it is waited for.

        Parameters
        ----------
        patience_seconds : float or None
            How long to wait for a callback, or for the other thread. None: as long as it takes.

        Raises
        ------
        FindingWarning
            If Python's warning filter makes errors of warnings, once everything is closed.
        """
        if os.getpid() != self._pid:
            return
        if self._closing.acquire(blocking=False):
            self._closing_thread = threading.get_ident()
            self._patience_seconds = patience_seconds
            self._running = False
            try:
                self._opened.close()
            finally:
                self._closed.set()
        elif self._closing_thread != threading.get_ident() and not self._advisor.in_own_thread:
            self._closed.wait(patience_seconds)

    def close_later(self) -> None:
        """Close, but in a thread of its own: garbage is collected in the middle of anything.

        Whatever thread that is may hold a lock for which the advisor waits. When the interpreter
        exits there is no such danger, and no thread can be started any more. In a forked child
        what is open is the parent's.
        """
        if os.getpid() != self._pid:
            return
        if threading.main_thread().is_alive():
            with contextlib.suppress(RuntimeError):  # no thread to be had
                # No daemon, whichever thread collects garbage: the interpreter joins it at the end.
                OwnThread(
                    target=self.close,
                    args=(_PATIENCE_SECONDS,),
                    name="rmm_uvm close",
                    daemon=False,
                ).start()
                return
        self.close(_PATIENCE_SECONDS)

    def _keep(self) -> None:
        """Keep the samples, and let go of the sampler, the drivers and the chains."""
        self._samples.keep()
        self._watched = {}
        for chain in self._chains.values():
            chain.forget()

    def _now_seconds(self) -> float:
        return time.monotonic() if self._clock is None else self._clock.now_seconds

    def elapsed_seconds(self) -> float:
        """Time since the beginning."""
        return self._now_seconds() - self._began_seconds

    def _observe(self, adaptor: UvmResourceAdaptor) -> None:
        if self._tracing is not None:
            self._tracing.observe(adaptor)

    def round(self) -> None:
        """Look at what changes slowly. The advisor's thread does before each look."""
        self._refresh(self._chains)
        if self._lines is not None:
            self._lines.look()
        if self._attribution is not None:
            self._attribution.look(self.elapsed_seconds())
        if self._tracing is not None and (sampler := self._samples.sampler) is not None:
            self._tracing.flush(sampler, self.findings)
        if self._publisher is not None and self._publisher.due:
            self._publisher.publish(
                interval_seconds=self.settings.interval_seconds,
                devices=self.devices,
                snapshots=[self._newest(facts) for facts in self.devices],
                sources=self.sources,
                findings=self.findings,
            )

    def _refresh(self, device_ids: Iterable[int]) -> None:
        """Look at chains; of those that changed, whoever noticed renews the facts."""
        watched = self._watched
        changed = [i for i in device_ids if self._chains[i].refresh() and i in watched]
        self._moved_devices |= {i for i in changed if self._moved(watched[i])}
        for device_id in changed:
            new = sources.renewed(watched[device_id], self._chains[device_id].names)
            self.devices = tuple(
                new if facts.device_id == device_id else facts for facts in self.devices
            )
            self._advisor.set_devices(self.devices)

    def tick(self) -> tuple[Finding, ...]:
        """Take a sample and look at it, in this thread; for tests."""
        self._samples.sample_now()
        return self._advisor.look()

    def samples(self, since_sequence: int = 0, /) -> tuple[Samples, int, int]:
        """Return samples from a sequence number on, the next number, and how many were lost."""
        return self._samples.since(since_sequence)

    def snapshot(self, device_id: int, *, fresh: bool = True) -> Snapshot:
        """Return totals and levels of a device: of this moment while it runs, else the last.

        Unless `fresh`, as of the newest sample.
        """
        fresh = fresh and self.running
        if fresh:
            self._refresh((device_id,))
            if self._attribution is not None:
                self._attribution.look(self.elapsed_seconds())
        return self._newest(self.facts_of(device_id), fresh=fresh)

    def _newest(self, facts: RecordedDevice, *, fresh: bool = False) -> Snapshot:
        rows = self._samples.newest(facts.device_id, fresh=fresh)
        if not len(rows):
            raise AvailabilityError(
                f"device {facts.device_id} has no sample yet: ask again after interval_seconds"
            )
        attribution = self._attribution
        return snapshot_of(
            self.masked(rows[-1:])[0],
            facts,
            causes=None if attribution is None else attribution.latest(facts.device_id),
            prefetch_skipped=self._chains[facts.device_id].prefetch_skipped,
            budget=_plain(self._chains[facts.device_id].budget),
            run_id=self._run_id,
        )

    def facts_of(self, device_id: int) -> RecordedDevice:
        """Return the facts of a watched device."""
        return next(facts for facts in self.devices if facts.device_id == device_id)

    @property
    def sources(self) -> Mapping[str, Availability]:
        """All sources, and why some are not there."""
        chains = self._chains.values()
        found = {
            **self._fixed_sources,
            "own_resources": sources.of_any(chain.own for chain in chains),
            "rmm_chain": sources.of_any(chain.foreign for chain in chains),
            "cupti": sources.NOT_ASKED_FOR,
            "board": sources.SWITCHED_OFF,
        }
        if self._attribution is not None:
            found["cupti"] = self._attribution.available
        if self._moved_devices or any(map(self._moved, list(self._watched.values()))):
            moved = sources.MOVED if self.settings.driver is None else sources.OTHER_THAN_NAMED
            found["kernel_counters"] = found["device_memory"] = moved
        if self._publisher is not None:
            found["board"] = self._publisher.available
        if self._tracing is not None:
            found["trace"] = self._tracing.available
        if self._lines is not None:
            found["lines"] = self._lines.available
        if self._off:  # what is missing is missing for one reason
            return {name: each if each else sources.OFF_SOURCE for name, each in found.items()}
        return found

    def _moved(self, device: WatchedDevice) -> bool:
        """Return whether the pool is on another simulated device than the one that is read.

        On a GPU all drivers of a process read the same counters. Who gives a driver means it.
        """
        if isinstance(self.settings.driver, UvmDriver):
            return False
        now = self._chains[device.facts.device_id].driver
        return device.facts.simulated and now is not None and now is not device.driver

    def masked(self, rows: Samples) -> Samples:
        """Return samples that do not claim to know what another simulated device counts."""
        if not self._moved_devices:
            return rows
        moved = np.isin(rows["device_id"], list(self._moved_devices))
        if moved.any():
            rows = rows.copy()
            rows["known"][moved] &= ~np.array(int(_OF_DEVICE), rows["known"].dtype)
        return rows

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings so far."""
        return self._advisor.findings

    @property
    def cost_seconds(self) -> float:
        """Processor time that watching took."""
        return self._samples.cost_seconds + self._advisor.cost_seconds

    def recording(self) -> Recording:
        """Return everything that was recorded so far, what was just found included."""
        if self.running:
            self.tick()
        rows, _, lost = self.samples()
        attribution = self._attribution
        budgets = {device_id: _plain(chain.budget) for device_id, chain in self._chains.items()}
        return Recording(
            samples=self.masked(rows),
            devices=self.devices,
            stages=self._stages.stages(),
            findings=self.findings,
            sources=dict(self.sources),
            causes=None if attribution is None else attribution.recorded(),
            busiest=() if attribution is None else attribution.busiest(),
            budgets={device_id: one for device_id, one in budgets.items() if one is not None},
            lines=None if self._lines is None else self._lines.recorded(),
            began=self.began,
            interval_seconds=self.settings.interval_seconds,
            lost_samples=lost,
            settings={
                **self.settings.described(),
                **({} if attribution is None else attribution.described()),
                **self._stages.described(),
                **recorded.described(chain.peak_bytes for chain in self._chains.values()),
            },
            versions=versions(self._driver_version),
            cost_seconds=self.cost_seconds,
            about=_about_process(),
        )


def _plain(budget: ResidencyStatistics | None) -> dict[str, Any] | None:
    return None if budget is None else dataclasses.asdict(budget)

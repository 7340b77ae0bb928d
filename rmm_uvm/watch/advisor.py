# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that looks at new samples, and has findings delivered.

Covers when and in which order. Does not cover what a finding is, see
`rmm_uvm.watch.judging.policy`, nor who is told, see `rmm_uvm.watch.telling.delivery`.
"""

from __future__ import annotations

import collections
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rmm_uvm._lib.own_threads import OwnThread
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.host_memory import HostMemory, host_memory
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.watch.judging.policy import Context, PolicyState, evaluate, worth_telling
from rmm_uvm.watch.judging.thresholds import Thresholds
from rmm_uvm.watch.telling.delivery import Delivery

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Advisor", "SampleSource"]

# Two looks a second: soon enough for people, and no cost.
_PAUSE_SECONDS = 0.5
_HOST_MEMORY_SECONDS = 1.0
# A week of the worst case: seven kinds, once a minute; those of a budget come once.
_MOST_FINDINGS = 70_000
_MOST_FAILURES = 100


class SampleSource(Protocol):
    """The source that an advisor reads: the compiled sampler, or a test's."""

    def samples(
        self, since_sequence: int = 0, /
    ) -> tuple[np.ndarray[Any, np.dtype[np.void]], int, int]:
        """Return samples from a sequence number on, the next number, and how many were lost."""
        ...


class Advisor:
    """Evaluates new samples twice a second in a thread of its own, and where a cell ends.

    Parameters
    ----------
    sampler : SampleSource
        Where samples come from.
    devices : sequence of RecordedDevice
        The watched devices; `set_devices` changes them.
    delivery : Delivery
        Who is told; closed by `stop`.
    thresholds : Thresholds, optional
        What is too much.
    prefetch : callable, optional
        Returns how our resource on a device (CUDA ordinal) prefetches: "auto", "always", "never",
        or None for no resource of ours.
    budget : callable, optional
        Returns how the budget of our pool on a device (CUDA ordinal) is kept; None for no budget.
    told_of_budget : callable, optional
        Called with the CUDA ordinal when a finding told what a budget cannot hold.
    interval_seconds : float
        Usual time between two samples of a device; see `Context`.
    sources : callable, optional
        Returns all sources and whether they work.
    on_round : sequence of callable
        Called before every look, without arguments.
    read_host_memory : callable
        Returns the `HostMemory`; asked once a second at most, only when more is allocated than a
        device holds, and not for simulated devices.
    clock : callable
        Returns seconds.

    Notes
    -----
    Thread-safe. What fails in a look is logged once, and the next look goes on. In a forked child
    there is no thread: `look` finds nothing there, and `stop` does nothing.
    """

    def __init__(
        self,
        sampler: SampleSource,
        devices: Sequence[RecordedDevice],
        delivery: Delivery,
        *,
        thresholds: Thresholds | None = None,
        prefetch: Callable[[int], str | None] = lambda device_id: None,
        budget: Callable[[int], ResidencyStatistics | None] = lambda device_id: None,
        told_of_budget: Callable[[int], object] = lambda device_id: None,
        interval_seconds: float = 0.0,
        sources: Callable[[], Mapping[str, Availability]] = dict,
        on_round: Iterable[Callable[[], object]] = (),
        read_host_memory: Callable[[], HostMemory] = host_memory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sampler = sampler
        self._devices = tuple(devices)
        self._delivery = delivery
        self._thresholds = thresholds or Thresholds()
        self._prefetch = prefetch
        self._budget = budget
        self._told_of_budget = told_of_budget
        self._interval_seconds = interval_seconds
        self._sources = sources
        self._on_round = tuple(on_round)
        self._read_host_memory = read_host_memory
        self._clock = clock
        self._states: dict[int, PolicyState] = {}
        self._findings: collections.deque[Finding] = collections.deque(maxlen=_MOST_FINDINGS)
        self._next_sequence = 0
        self._host: tuple[float, HostMemory | None] | None = None
        self._failed: dict[str, None] = {}
        self._cost_seconds = 0.0
        self._looking = threading.Lock()
        self._stopping = threading.Event()
        self._looks_last = False
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        delivery.look_after_cells(self.look)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings so far, in order of time; of very many the latest."""
        return tuple(self._findings)

    @property
    def cost_seconds(self) -> float:
        """Processor time that looking took so far, in whichever thread."""
        return self._cost_seconds

    @property
    def failures(self) -> tuple[str, ...]:
        """The failures of looks, each once; empty when all is well."""
        return tuple(self._failed)

    def set_devices(self, devices: Sequence[RecordedDevice]) -> None:
        """Replace the facts, as when a program installs another pool."""
        self._devices = tuple(devices)

    def start(self) -> None:
        """Begin looking."""
        if self._thread is None and self._here():
            thread = OwnThread(target=self._work, name="rmm_uvm advisor", daemon=True)
            thread.start()
            self._thread = thread

    @property
    def in_own_thread(self) -> bool:
        """Whether the caller is the thread that looks, as callbacks are."""
        return self._thread is threading.current_thread()

    def stop(self, within_seconds: float | None = None) -> None:
        """Look once more, show what was not shown, and end the thread; may be called twice.

        Parameters
        ----------
        within_seconds : float or None
            Wait for the thread so long at most, for example for a callback that blocks; the last
            look is that thread's then, so that it cannot block this one. None: as long as it takes.

        Raises
        ------
        FindingWarning
            If Python's warning filter makes errors of warnings, once everything is stopped.
        """
        if not self._here() or self._stopping.is_set():
            return
        thread = None if self.in_own_thread else self._thread
        self._looks_last = thread is not None and within_seconds is not None
        self._stopping.set()
        if thread is not None:
            thread.join(within_seconds)
            if thread.is_alive():
                logging.getLogger("rmm_uvm.watch").warning(
                    "on_finding has not returned for %g s: not waiting any longer", within_seconds
                )
        if not self._looks_last:
            self.look()
        self._delivery.close()

    def look(self) -> tuple[Finding, ...]:
        """Evaluate what is new now, in this thread; return what was found."""
        if not self._here():
            return ()
        with self._looking:
            begin = time.thread_time()
            for call in self._on_round:
                self._attempt("a watching hook", call)
            findings: list[Finding] = []
            self._attempt("evaluating samples", lambda: findings.extend(self._evaluate()))
            self._findings.extend(findings)
            self._cost_seconds += time.thread_time() - begin
        # Not under the lock: a callback may stop the monitor.
        self._attempt("delivering findings", lambda: self._delivery.deliver(findings))
        return tuple(findings)

    def _work(self) -> None:
        # Waits for no sample: that wait could not be cut short, and stopping would take as long.
        while not self._stopping.wait(_PAUSE_SECONDS):
            self.look()
        if self._looks_last:
            self.look()

    def _evaluate(self) -> list[Finding]:
        samples, self._next_sequence, _ = self._sampler.samples(self._next_sequence)
        findings: list[Finding] = []
        if not len(samples):
            return findings
        sources = self._sources()
        for device in self._devices:
            new = samples[samples["device_id"] == device.device_id]
            state = self._states.get(device.device_id, PolicyState())
            self._states[device.device_id], found = evaluate(
                state, new, self._context(device, sources, new), self._thresholds
            )
            findings.extend(found)
            if any(finding.kind == "budget" for finding in found):
                self._told_of_budget(device.device_id)
        return sorted(findings, key=lambda finding: finding.time_seconds)

    def _context(
        self,
        device: RecordedDevice,
        sources: Mapping[str, Availability],
        samples: np.ndarray[Any, np.dtype[np.void]],
    ) -> Context:
        host = None
        # What a simulated device evicts is no memory of this machine, and while all fits on the
        # device the host need not be asked: its answer is most of what a look costs.
        if not device.simulated and (samples["footprint_bytes"] > device.capacity_bytes).any():
            host = self._host_memory()
        return Context(
            device=device,
            host_available_bytes=None if host is None else host.available_bytes,
            host_limit_source="" if host is None else host.limit_source,
            prefetch=self._prefetch(device.device_id),
            budget=self._budget(device.device_id),
            interval_seconds=self._interval_seconds,
            unavailable=worth_telling(sources, simulated=device.simulated),
        )

    def _host_memory(self) -> HostMemory | None:
        now = self._clock()
        if self._host is None or now - self._host[0] >= _HOST_MEMORY_SECONDS:
            try:
                self._host = (now, self._read_host_memory())
            except AvailabilityError:  # not Linux: one finding less
                self._host = (now, None)
        return self._host[1]

    def _attempt(self, what: str, call: Callable[[], object]) -> None:
        """Call something whose failure must not end watching; log the first of each kind."""
        try:
            call()
        except Exception as error:
            kind = f"{what}: {type(error).__name__}: {error}"
            if kind not in self._failed and len(self._failed) < _MOST_FAILURES:
                self._failed[kind] = None
                logging.getLogger("rmm_uvm.watch").exception("%s failed", what)

    def _here(self) -> bool:
        return os.getpid() == self._pid

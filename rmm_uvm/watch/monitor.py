# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`rmm_uvm.monitor`: watching managed memory while a program runs.

Covers what users touch. Does not cover what is opened for it, see `rmm_uvm.watch.session`, nor what
is concluded, see `rmm_uvm.watch.judging.policy`.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
import weakref
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.monitor import FakeClock
from rmm_uvm._lib.thread_starts import starting_thread
from rmm_uvm.errors import AvailabilityError, ConfigurationError, FindingWarning
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.support.messages import shown
from rmm_uvm.watch.judging.thresholds import Thresholds
from rmm_uvm.watch.session import Session
from rmm_uvm.watch.settings import check_settings, never
from rmm_uvm.watch.snapshot import Snapshot, Window, window_between
from rmm_uvm.watch.telling.delivery import OnFinding

if TYPE_CHECKING:
    import numpy as np

    from rmm_uvm.report import Report
    from rmm_uvm.watch.telling.metrics_server import MetricsServer

__all__ = ["Monitor", "running"]

# Module state, since it is of the process. No lock: garbage collection may stop a monitor in the
# middle of anything.
_running: dict[int, weakref.ref[Monitor]] = {}


def running() -> tuple[Monitor, ...]:
    """Return the monitors that run in this process now, the one that was started last at the end.

    Examples
    --------
    >>> import rmm_uvm
    >>> with rmm_uvm.monitor(driver="simulated:64MiB", publish=False) as m:
    ...     running() == (m,)
    True
    """
    found = (reference() for reference in list(_running.values()))
    return tuple(monitor for monitor in found if monitor is not None and monitor.running)


def _enter(monitor: Monitor) -> None:
    """Put a monitor that was started at the end; it leaves by itself when it is dropped."""
    _leave(monitor)  # so that it comes last
    _running[id(monitor)] = weakref.ref(monitor, functools.partial(_forget, id(monitor)))


def _leave(monitor: Monitor) -> None:
    """Take a monitor out; nothing if it is not there."""
    _running.pop(id(monitor), None)


def _forget(identity: int, reference: weakref.ref[Monitor]) -> None:
    # Another monitor may have taken the place in memory meanwhile.
    if _running.get(identity) is reference:
        del _running[identity]


class Monitor:
    """Watches the managed memory of this process: what moves, what is evicted, what to do about it.

    Also a context manager. Works on any chain of RMM, on none, and without a GPU: `sources` says
    what is not seen, and why. Costs next to nothing; `attribution` alone is dear.

    Parameters
    ----------
    devices : int, iterable of int or None
        CUDA ordinals. None: those on which a pool of ours is installed, else device 0.
    interval_seconds : float
        Between two samples, seconds; 0.001 to 3600.
    history : int
        Samples kept of each device, >= 2; 120 bytes each. The oldest are dropped.
    faults : bool
        Count faults too. A program that only faults takes up to 10 % longer.
    attribution : bool
        Tell bytes by cause, with CUPTI. A faulting program takes two to four times as long.
    lines : bool
        Tell what moved by the lines of the program that allocated it, of managed memory from pools
        of rmm_uvm and RMM. Costs 0.3 to 0.9 us for an allocation and its free. Without a budget
        page faults are estimated from windows of a few milliseconds, at most 2 % of the time.
    on_finding : {"warn", "raise", "log"}, callable or None
        What to do about a finding; see `rmm_uvm.watch.telling.delivery.Delivery`. None: only keep
        it.
    thresholds : Thresholds or None
        What is too much. None: the defaults, and what the environment asks for; see
        `rmm_uvm.watch.judging.thresholds.Thresholds.from_environment`.
    driver : UvmDriver, str or None
        What to read: a driver, "cuda", "simulated" or "simulated:16GiB". None: the driver of the
        installed pool, else ``RMM_UVM_DRIVER``, else the GPU.
    trace : path-like or None
        Write a trace to this file, which must not exist.
    publish : bool
        Let ``rmm-uvm top`` of the same user see the figures.

    Raises
    ------
    ConfigurationError
        If an argument cannot be used, or a threshold in the environment. Nothing was opened.

    Notes
    -----
    Reading is thread-safe; starting and stopping are not. A monitor stops when it is dropped and
    when the interpreter exits. In a forked child it is stopped, and keeps what it had seen.

    It does not follow a pool that moves to another simulated device; `sources` says so then.

    Examples
    --------
    >>> import rmm_uvm
    >>> device = rmm_uvm.simulated_device("64MiB")
    >>> mr = rmm_uvm.mr.ManagedMemoryResource(device)
    >>> with rmm_uvm.monitor(driver=device, publish=False) as m:
    ...     pointer = mr.allocate(16 << 20)
    ...     before = m.snapshot()
    ...     device.cpu_touch(pointer, 16 << 20)
    ...     m.window(before).device_to_host_bytes
    16777216
    >>> mr.deallocate(pointer, 16 << 20)
    """

    def __init__(
        self,
        *,
        devices: int | Iterable[int] | None = None,
        interval_seconds: float = 0.1,
        history: int = 86_400,
        faults: bool = False,
        attribution: bool = False,
        lines: bool = False,
        on_finding: OnFinding = "warn",
        thresholds: Thresholds | None = None,
        driver: UvmDriver | str | None = None,
        trace: str | os.PathLike[str] | None = None,
        publish: bool = True,
    ) -> None:
        self._settings = check_settings(
            devices=devices,
            interval_seconds=interval_seconds,
            history=history,
            faults=faults,
            attribution=attribution,
            lines=lines,
            on_finding=on_finding,
            thresholds=thresholds,
            driver=driver,
            trace=trace,
            publish=publish,
        )
        self._session: Session | None = None
        self._finalizer: weakref.finalize[[], Monitor] | None = None
        self._clock: FakeClock | None = None  # tests set it

    def defer_to_others(self) -> None:
        """Leave warnings to another monitor of the program, while one warns of the same GPU.

        A simulated device may be another one of the same number, and so does not count.
        """
        myself = weakref.ref(self)

        def others_warn(device_id: int) -> bool:
            return any(
                facts.device_id == device_id and not facts.simulated
                for other in running()
                if other is not myself() and other.on_finding in ("warn", "raise")
                for facts in other.devices
            )

        self._settings = dataclasses.replace(self._settings, others_warn=others_warn)

    def of_devices(self, devices: Iterable[int]) -> Monitor:
        """Return another, not started, for some devices: with these settings, but without a trace.

        It defers to others if this one does.
        """
        made = copy.copy(self)
        made._session = made._finalizer = None
        made._settings = dataclasses.replace(self._settings, devices=tuple(devices), trace=None)
        if self._settings.others_warn is not never:
            made.defer_to_others()
        return made

    def start(self) -> Monitor:
        """Begin to watch; nothing if it runs already. After a stop, a fresh recording begins.

        Returns
        -------
        Monitor
            This one.

        Raises
        ------
        DataError
            If the trace cannot be written, the file exists, or another trace is being written.
        MemoryError
            If there is no memory for the samples.
        AvailabilityError
            If the process can have no more threads.
        """
        if not self.running:
            self.stop()  # a callback may be at it
            with starting_thread("a monitor", "go without it"):
                self._session = session = Session(self._settings, self._clock)
            self._finalizer = weakref.finalize(self, session.close_later)
            _enter(self)
        return self

    def stop(self) -> None:
        """Stop watching; idempotent. What was recorded stays until the next start.

        Raises
        ------
        FindingWarning
            If a warning was not shown yet, and Python's warning filter makes an error of it.
        """
        session, finalizer = self._session, self._finalizer
        _leave(self)
        try:
            if session is not None:
                session.close()
        finally:
            if finalizer is not None:  # and not before: at exit it waits for a callback's stop
                finalizer.detach()

    def __enter__(self) -> Monitor:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except FindingWarning as refused:
            if error is None:
                raise
            error.add_note(str(refused))  # the body's own error is the one to see

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped" if self._session else "not started"
        watched = ", ".join(f"{facts.device_id}: {facts.name}" for facts in self.devices)
        return f"<rmm_uvm.monitor, {state}" + (f", device {watched}>" if watched else ">")

    @property
    def running(self) -> bool:
        """Whether it watches now."""
        return self._session is not None and self._session.running

    @property
    def on_finding(self) -> OnFinding:
        """The way in which findings are told, as asked."""
        return self._settings.on_finding

    @property
    def devices(self) -> tuple[RecordedDevice, ...]:
        """The watched devices; empty before the first start."""
        return () if self._session is None else self._session.devices

    @property
    def sources(self) -> Mapping[str, Availability]:
        """Sources of figures by name, and why some are lacking; empty before the first start."""
        return {} if self._session is None else self._session.sources

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, in order of time."""
        return () if self._session is None else self._session.findings

    @property
    def cost_seconds(self) -> float:
        """Processor time that watching took so far."""
        return 0.0 if self._session is None else self._session.cost_seconds

    def snapshot(self, device: int | None = None, *, fresh: bool = True) -> Snapshot:
        """Return totals and levels of a device, now; after `stop`, as they were last.

        Parameters
        ----------
        device : int or None
            CUDA ordinal; None: the first that is watched.
        fresh : bool
            Take a sample for it. False: as of the newest there is, and the GPU is not asked.

        Raises
        ------
        ConfigurationError
            If the device is not watched.
        AvailabilityError
            If the monitor was never started.
        """
        session = self._started()
        return session.snapshot(self._watched(device), fresh=fresh)

    def window(self, since: Snapshot | None = None, device: int | None = None) -> Window:
        """Return what happened between a snapshot and now.

        Parameters
        ----------
        since : Snapshot or None
            An earlier snapshot of this monitor; None: its start.
        device : int or None
            CUDA ordinal; None: the one of `since`, else the first that is watched.

        Raises
        ------
        ConfigurationError
            If the device is not watched, or `since` is no snapshot of it from this run.
        AvailabilityError
            If the monitor was never started.
        """
        session = self._started()
        if since is not None and not isinstance(since, Snapshot):
            raise ConfigurationError(f"since={shown(since)}: give what snapshot() returned")
        device = since.device_id if device is None and since is not None else device
        until = session.snapshot(self._watched(device))
        rows, _, lost = session.samples()
        kept_from_ns = int(rows["time_ns"][0]) if lost else 0
        rows = rows[rows["device_id"] == until.device_id]
        return window_between(since, until, rows, kept_from_ns=kept_from_ns)

    @overload
    def samples(
        self, device: int | None = ..., *, pandas: Literal[False] = ...
    ) -> np.ndarray[Any, np.dtype[np.void]]: ...
    @overload
    def samples(self, device: int | None = ..., *, pandas: Literal[True]) -> Any: ...
    def samples(self, device: int | None = None, *, pandas: bool = False) -> Any:
        """Return the samples that are kept, in order of time; a copy.

        Parameters
        ----------
        device : int or None
            CUDA ordinal; None: all devices, interleaved.
        pandas : bool
            Return a DataFrame with the same columns.

        Returns
        -------
        ndarray, shape (n_samples,), dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`, or DataFrame

        Raises
        ------
        ConfigurationError
            If the device is not watched.
        AvailabilityError
            If the monitor was never started, or pandas is not installed.
        """
        session = self._started()
        rows = session.masked(session.samples()[0])
        if device is not None:
            rows = rows[rows["device_id"] == self._watched(device)]
        if not pandas:
            return rows
        try:
            from pandas import DataFrame
        except ImportError:
            raise AvailabilityError(
                "samples(pandas=True) needs pandas: pip install pandas"
            ) from None
        return DataFrame({name: rows[name] for name in rows.dtype.names or ()})

    def recording(self) -> Recording:
        """Return everything that was recorded so far, as one value. Raises as `report`."""
        return self._started().recording()

    def report(self) -> Report:
        """Return the report: text when printed, a timeline in notebooks, HTML and JSON on disk.

        Raises
        ------
        AvailabilityError
            If the monitor was never started.
        """
        from rmm_uvm.report import Report

        return Report(self.recording())

    @staticmethod
    def start_http(
        port: int, host: str = "127.0.0.1", monitor: Monitor | None = None
    ) -> MetricsServer:
        """Serve figures to Prometheus: ``rmm_uvm.monitor.start_http(9400)``.

        Parameters
        ----------
        port : int
            TCP port; 0 takes one that is free.
        host : str
            Address to listen at; by default nobody outside this machine can read.
        monitor : Monitor or None
            Whose figures. None: of all that run, such as the one that `rmm_uvm.reinitialize`
            started; if none runs, one is started.

        Returns
        -------
        MetricsServer
            With ``port`` and ``close()``.

        Raises
        ------
        AvailabilityError
            If the port is taken, or prometheus_client is not installed.
        """
        from rmm_uvm.watch.telling.prometheus import serve

        if monitor is not None:
            return serve(port, host, lambda: (monitor,))
        return serve(port, host, running, None if running() else Monitor)

    def _started(self) -> Session:
        if self._session is None:
            raise AvailabilityError("the monitor was not started: call start(), or use `with`")
        return self._session

    def _watched(self, device: int | None) -> int:
        watched = [facts.device_id for facts in self.devices]
        if device is None:
            return watched[0]
        if device not in watched:
            raise ConfigurationError(
                f"device {shown(device)} is not watched; watched: {', '.join(map(str, watched))}"
            )
        return device

    def _tick(self) -> tuple[Finding, ...]:
        """Take a sample and look at it, in this thread; for tests."""
        return self._started().tick()

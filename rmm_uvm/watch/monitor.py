# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`rmm_uvm.monitor`: watching managed memory while a program runs.

Covers what users touch. Does not cover what is opened for it, see `rmm_uvm.watch.session`, nor what
is concluded, see `rmm_uvm.watch.policy`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.device_info import Availability
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.watch.finding import Finding
from rmm_uvm.watch.recording import DeviceFacts, Recording
from rmm_uvm.watch.session import Session
from rmm_uvm.watch.settings import check_settings
from rmm_uvm.watch.snapshot import Snapshot, Window, window_between

if TYPE_CHECKING:
    import numpy as np

    from rmm_uvm.report import Report

__all__ = ["Monitor", "running"]

# Whoever shows or exports what is watched has to find it: magics, the exporter, forked children.
_running: weakref.WeakSet[Monitor] = weakref.WeakSet()


def running() -> tuple[Monitor, ...]:
    """Return the monitors that run in this process now, in no particular order."""
    return tuple(monitor for monitor in _running if monitor.running)


class Monitor:
    """Watches managed memory of this process: bytes moved, footprint, evictions, and what to do."""

    def __init__(
        self,
        *,
        devices: int | Iterable[int] | None = None,
        interval_seconds: float = 0.1,
        history: int = 86_400,
        faults: bool = False,
        attribution: bool = False,
        on_finding: str | Callable[[Finding], object] | None = "warn",
        thresholds: Any = None,
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
            on_finding=on_finding,
            thresholds=thresholds,
            driver=driver,
            trace=trace,
            publish=publish,
        )
        self._session: Session | None = None
        self._finalizer: Any = None

    def start(self) -> Monitor:
        """Begin to watch; nothing if it runs already. After a stop, a fresh recording begins."""
        if not self.running:
            self._session = session = Session(self._settings)
            self._finalizer = weakref.finalize(self, session.close)
            _running.add(self)
        return self

    def stop(self) -> None:
        """Stop watching; idempotent. What was recorded stays until the next start."""
        _running.discard(self)
        if self._session is not None:
            self._finalizer()

    def __enter__(self) -> Monitor:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether it watches now."""
        return self._session is not None and self._session.running

    @property
    def devices(self) -> tuple[DeviceFacts, ...]:
        """The watched devices; empty before the first start."""
        return () if self._session is None else self._session.devices

    @property
    def sources(self) -> Mapping[str, Availability]:
        """Where figures come from, by name, and why some do not; empty before the first start."""
        return {} if self._session is None else self._session.sources

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, in order of time."""
        return () if self._session is None else self._session.findings

    @property
    def cost_seconds(self) -> float:
        """Processor time that watching took so far."""
        return 0.0 if self._session is None else self._session.cost_seconds

    def snapshot(self, device: int | None = None) -> Snapshot:
        """Return totals and levels of a device, now; after `stop`, as they were last."""
        session = self._started()
        return session.snapshot(self._watched(device))

    def window(self, since: Snapshot | None = None, device: int | None = None) -> Window:
        """Return what happened since a snapshot, or since the start."""
        session = self._started()
        if device is None and since is not None:
            device = since.device_id
        until = session.snapshot(self._watched(device))
        return window_between(since, until, self.samples(until.device_id))

    def samples(self, device: int | None = None, *, pandas: bool = False) -> Any:
        """Return the samples that are kept, of one device or all, in order of time."""
        rows: np.ndarray[Any, np.dtype[np.void]]
        rows, _ = self._started().samples()
        if device is not None:
            rows = rows[rows["device_id"] == self._watched(device)]
        if not pandas:
            return rows
        try:
            import pandas as pd
        except ImportError:
            raise AvailabilityError(
                "samples(pandas=True) needs pandas: pip install pandas"
            ) from None
        return pd.DataFrame({name: rows[name] for name in rows.dtype.names or ()})

    def recording(self) -> Recording:
        """Return everything that was recorded so far, as one value."""
        session = self._started()
        rows, lost = session.samples()
        return Recording(
            samples=rows,
            devices=session.devices,
            stages=session.stages(),
            findings=session.findings,
            sources=dict(session.sources),
            began=session.began,
            interval_seconds=self._settings.interval_seconds,
            lost_samples=lost,
            settings=self._settings.described(),
            versions={},
            cost_seconds=session.cost_seconds,
        )

    def report(self) -> Report:
        """Return the report: text when printed, a timeline in notebooks, HTML and JSON on disk."""
        from rmm_uvm.report import Report

        return Report(self.recording())

    @staticmethod
    def start_http(port: int, host: str = "127.0.0.1", monitor: Monitor | None = None) -> Any:
        """Serve the figures to Prometheus; see `rmm_uvm.integrations.prometheus`."""
        import importlib

        exporter = importlib.import_module("rmm_uvm.integrations.prometheus")
        return exporter.start_http(port, host, monitor)

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
                f"device {device!r} is not watched; watched: {', '.join(map(str, watched))}"
            )
        return device

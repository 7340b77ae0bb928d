# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every worker's figures in its heartbeat: the scheduler has them as ``ws.metrics["rmm-uvm"]``.

Covers reading them and putting them among the worker's metrics, for Prometheus too. Does not cover
their meaning; see `rmm_uvm.dask.worker.figures`. A client reads them without asking the workers::

    client.scheduler_info(n_workers=-1)["workers"][address]["metrics"]["rmm-uvm"]

See Also
--------
rmm_uvm.dask.dashboard : a page that shows them.
docs/use/metrics.md : lists the names.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.dask.installed import installed_pools, workers_pool
from rmm_uvm.dask.worker.figures import NAME, WorkerFigures

if TYPE_CHECKING:
    from rmm_uvm.pool.device_installation import DeviceInstallation
    from rmm_uvm.pool.installation import Installation
    from rmm_uvm.recording.recorded import RecordedDevice
    from rmm_uvm.watch.monitor import Monitor
    from rmm_uvm.watch.snapshot import Snapshot

__all__ = ["CommCollector", "Telemetry", "attach", "detach", "watching_monitor"]

_BYTES = re.compile(r"(sent|received)_(\w+)_bytes")
_TEXTS = {
    "chunk_waits": "How often a transfer waited for a staging chunk",
    "chunk_wait_seconds": "For how long transfers waited for staging chunks",
    "aborted_transfers": "Messages with device frames that ended with an error",
    "refused_messages": "Messages and handshakes that are none of this protocol",
    "pulled_bytes": "Of the staged bytes, those that receivers copied from the sender's chunks",
}


def _ipc_pools() -> dict[int, int]:
    """Return the bytes of every IPC pool that is installed now, by device."""
    from rmm_uvm.pool.install import installed_devices

    return {one.info.device_id: one.sizes.ipc_bytes for one in installed_devices()}


class CommCollector:
    """Gives ``prometheus_client`` figures: a custom collector.

    Parameters
    ----------
    read_totals : callable
        Returns the totals of transfers by name.
    read_pools : callable
        Returns the bytes of IPC pools by device; 0 for a device without one.

    Notes
    -----
    Thread-safe.
    """

    def __init__(
        self,
        read_totals: Callable[[], Mapping[str, float]] = lambda: totals().to_dict(),
        read_pools: Callable[[], Mapping[int, int]] = _ipc_pools,
    ) -> None:
        self._read_totals = read_totals
        self._read_pools = read_pools

    def describe(self) -> Iterator[Any]:
        """Yield all metrics; their names do not depend on what is installed."""
        yield from self._families({})

    def collect(self) -> Iterator[Any]:
        """Yield all metrics with their values now."""
        yield from self._families(self._read_pools())

    def _families(self, pools: Mapping[int, int]) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        moved = CounterMetricFamily(
            "rmm_uvm_comm_bytes",
            "Device bytes sent to and received from other workers, by way",
            labels=["direction", "way"],
        )
        for name, value in self._read_totals().items():
            if match := _BYTES.fullmatch(name):
                moved.add_metric(list(match.groups()), value)
            else:
                text = _TEXTS.get(name, name.replace("_", " "))
                yield CounterMetricFamily(f"rmm_uvm_comm_{name}", text, value=value)
        yield moved
        pool = GaugeMetricFamily(
            "rmm_uvm_ipc_pool_bytes", "Size of the IPC pool, 0 without one", labels=["device"]
        )
        for device_id, nbytes in pools.items():
            pool.add_metric([str(device_id)], nbytes)
        yield pool


_LEVELS = (
    "footprint_bytes", "resident_bytes", "capacity_bytes", "device_used_bytes", "resident_exact",
    "oversubscription_factor",
)  # fmt: skip
_TOTALS = ("host_to_device_bytes", "device_to_host_bytes", "evicted_bytes_estimate")


def attach(worker: Any) -> None:
    """Put our figures among a worker's metrics, and at its ``/metrics``; again: nothing.

    Parameters
    ----------
    worker : distributed.Worker
        The worker. Several in one process tell the same: figures are those of the process.

    Notes
    -----
    To be called in the thread of the worker's event loop, as preloads and plugins are. Its metrics
    become another dict: a heartbeat may be waiting for one of them, in the midst of the old, and a
    worker whose heartbeat fails closes.
    """
    from rmm_uvm.watch.telling import collectors

    if isinstance(worker.metrics.get(NAME), Telemetry):
        return
    worker.metrics = {**worker.metrics, NAME: Telemetry()}
    exported = collectors.register(CommCollector)
    if not exported:
        logging.getLogger("rmm_uvm.dask").debug("%s", exported.reason)


def detach(worker: Any) -> None:
    """Take them away; nothing if they are not there."""
    from rmm_uvm.watch.telling import collectors

    if isinstance(worker.metrics.get(NAME), Telemetry):
        worker.metrics = {name: each for name, each in worker.metrics.items() if name != NAME}
        collectors.unregister(CommCollector)


class Telemetry:
    """Reads this process' figures; what a worker calls before each heartbeat.

    Notes
    -----
    Takes about 50 us a device and asks no GPU: the newest sample will do. Never raises: what goes
    wrong is the reason for which there are no figures.
    """

    def __init__(self) -> None:
        self._before: dict[int, Snapshot] = {}
        self._rates: dict[int, dict[str, float | None]] = {}

    def __call__(self, worker: Any = None) -> dict[str, Any]:
        """Return `WorkerFigures` as a plain value."""
        try:
            return self.figures().to_dict()
        except Exception as error:  # a worker without a heartbeat is taken for dead
            reason = f"figures could not be read: {type(error).__name__}: {error}"
            return WorkerFigures(reason=reason).to_dict()

    def figures(self) -> WorkerFigures:
        """Return what is known now."""
        pools, monitor = installed_pools(), watching_monitor()
        if pools:
            told = [self._of_pool(*pair) for pair in pools]
        elif monitor is not None:
            told = [self._watched(monitor, facts, None) for facts in monitor.devices]
        else:
            told = [WorkerFigures(reason="no pool of rmm_uvm is installed, and none watches")]
        total = len(told) if pools or monitor is not None else None
        comm = totals().to_dict()
        return dataclasses.replace(told[0], devices_total=total, comm=comm, others=tuple(told[1:]))

    def _of_pool(self, installed: Installation, device: DeviceInstallation) -> WorkerFigures:
        from rmm_uvm.watch.monitor import running

        device_id = device.info.device_id
        # Its own goes before others; where that was stopped or left out, the last one counts.
        own = () if installed.monitor is None else (installed.monitor,)
        for monitor in (*(each for each in own if each.running), *reversed(running())):
            for facts in monitor.devices:
                if facts.device_id == device_id:
                    return self._watched(monitor, facts, device.sizes.ipc_bytes)
        return _unwatched(installed, device)

    def _watched(
        self, monitor: Monitor, facts: RecordedDevice, ipc_pool_bytes: int | None
    ) -> WorkerFigures:
        from rmm_uvm.watch.judging.policy import worth_telling

        now = monitor.snapshot(facts.device_id, fresh=False)
        findings = [each for each in monitor.findings if each.device_id == facts.device_id]
        return WorkerFigures(
            device_id=facts.device_id,
            device_name=facts.name,
            simulated=facts.simulated,
            **{name: getattr(now, name) for name in (*_LEVELS, *_TOTALS)},
            **self._rates_until(now),
            findings_total=len(findings),
            finding=str(findings[-1]) if findings else "",
            finding_kind=findings[-1].kind if findings else "",
            ipc_pool_bytes=ipc_pool_bytes,
            missing=worth_telling(monitor.sources, simulated=facts.simulated),
        )

    def _rates_until(self, now: Snapshot) -> dict[str, Any]:
        """Return the rates since the last call; with no newer sample, those of that call."""
        before, device_id = self._before.get(now.device_id), now.device_id
        if before is None or before.time_ns != now.time_ns:
            self._rates[device_id] = {
                f"{n}_per_second": rate_between(before, now, n) for n in _TOTALS
            }
        self._before[device_id] = now
        return self._rates[device_id]


def rate_between(before: Snapshot | None, now: Snapshot, name: str) -> float | None:
    """Return by how much a total grew a second; None if that cannot be said.

    Examples
    --------
    >>> from rmm_uvm.watch.snapshot import Snapshot
    >>> first = Snapshot(0, 1_000_000_000, host_to_device_bytes=5)
    >>> then = Snapshot(0, 3_000_000_000, host_to_device_bytes=25)
    >>> rate_between(first, then, "host_to_device_bytes")
    10.0
    >>> print(rate_between(then, first, "host_to_device_bytes"))  # another monitor's
    None
    """
    begin, end = None if before is None else getattr(before, name), getattr(now, name)
    if before is None or begin is None or end is None or before.device_id != now.device_id:
        return None
    seconds = (now.time_ns - before.time_ns) / 1e9
    if seconds <= 0 or end < begin:
        return None
    return float((end - begin) / seconds)


def watching_monitor() -> Monitor | None:
    """Return the monitor of the worker's pool, else the one that was started last, or None."""
    from rmm_uvm.watch.monitor import running

    found = workers_pool()
    monitor = None if found is None else found[0].monitor
    if monitor is not None and monitor.running:
        return monitor
    monitors = running()
    return monitors[-1] if monitors else None


def _unwatched(installed: Installation, device: DeviceInstallation) -> WorkerFigures:
    """Return the little that is known without a monitor, and why it is little."""
    return WorkerFigures(
        reason=f"no monitor runs: {installed.monitor_reason or 'it was stopped'}",
        device_id=device.info.device_id,
        device_name=device.info.name,
        simulated=device.info.simulated,
        footprint_bytes=device.managed_mr.get_allocated_bytes(),
        ipc_pool_bytes=device.sizes.ipc_bytes,
    )

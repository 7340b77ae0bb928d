# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of monitors as Prometheus wants them.

docs/use/metrics.md lists what is exported; what is not known is left out: it is never 0. Users find
it in `rmm_uvm.integrations.prometheus` and as ``rmm_uvm.monitor.start_http``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from rmm_uvm.errors import UvmError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.watch.snapshot import Snapshot
from rmm_uvm.watch.telling import collectors
from rmm_uvm.watch.telling.metrics_server import MetricsServer

__all__ = ["FiguresCollector", "StartedMonitor", "WatchingMonitor", "serve"]

_DIRECTIONS = ("host_to_device", "device_to_host")
_TOTALS = {
    "evicted_bytes_estimate": "Bytes evicted to make room on the device, an estimate",
    "prefetched_bytes": "Bytes that came to the device as rmm_uvm prefetched them, at most",
    "discarded_bytes": "Bytes not copied since rmm_uvm discarded them, at most",
    "cpu_faults": "Faults of the CPU on managed pages",
    "gpu_faults": "Faults of the GPU on managed pages",
}
_LEVELS = {
    "footprint_bytes": "Bytes allocated and not freed",
    "managed_bytes": "Managed memory taken from the driver",
    "resident_bytes": "Managed memory on the device, an estimate on a GPU",
    "capacity_bytes": "Device memory that managed pages can use",
    "device_used_bytes": "Device memory in use by all processes",
    "oversubscription_factor": "Footprint over capacity: 1 is full",
}
_BUDGET_TOTALS = {
    "evicted_bytes": "Bytes that left to keep the budget, to the host or to neighbours",
    "uncopied_bytes": "Of those, bytes of which the host had kept a copy: nothing was copied",
    "copied_early_bytes": "Bytes copied to the host before they had to leave",
    "dropped_bytes": "Dead bytes that were dropped to keep the budget, and not copied",
    "fetched_bytes": "Bytes brought in for uses that waited",
    "faulted_bytes": "Bytes that kernels faulted in: at least",
    "found_bytes": "Of those, bytes that were found, so that they count under the budget",
    "too_large": "Requests larger than the budget",
    "host_read_bytes": "Of those, bytes that kernels read on the host, through mappings",
    "neighbor_bytes": "Of the bytes that left, those that went to neighbours",
    "from_neighbor_bytes": "Bytes that came back from neighbours",
    "in_place_bytes": "Bytes of announced uses on neighbours, through mappings",
    "copied_beside_bytes": "Bytes on neighbours that were copied to the host beforehand",
    "staged_bytes": "Bytes fetched from the host by way of a neighbour",
    "given_back_bytes": "Bytes that left a neighbour because its owner needs the memory",
    "given_back_at_once_bytes": "Of those, bytes that left without a copy",
    "held_back": "Times that blocks left to the host because the neighbours were busy",
    "reclaims": "Times that other processes held what was needed here",
    "reclaim_wait_seconds": "What was waited until they had left it",
    "waited_seconds": "Time in which at least one request waited for data or for room",
}
_BUDGET_LEVELS = {
    "budget_bytes": "Device memory that managed memory may take",
    "resident_bytes": "Of the budget, what is taken",
    "overshoot_bytes": "Bytes faulted in beside the budget and not found yet, an estimate",
    "harvested_bytes": "Bytes on neighbours",
    "peak_harvested_bytes": "Bytes on neighbours, at most, since the pool was made",
    "foresees": "Whether the predictor of the eviction policy is believed",
}


class WatchingMonitor(Protocol):
    """The part of a `rmm_uvm.monitor` that is read."""

    @property
    def devices(self) -> Sequence[RecordedDevice]:
        """The watched devices."""

    @property
    def sources(self) -> Mapping[str, Availability]:
        """The sources of figures, by name."""

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings."""

    def snapshot(self, device: int | None = None) -> Snapshot:
        """Return totals and levels of a device, now; raises `UvmError` when it does not run."""


class StartedMonitor(Protocol):
    """The part of a monitor that a server starts and stops."""

    def start(self) -> object:
        """Begin to watch."""

    def stop(self) -> None:
        """Stop watching; idempotent."""


class FiguresCollector:
    """The collector of `rmm_uvm.integrations.prometheus.MonitorCollector`, for any monitors."""

    def __init__(self, monitors: Callable[[], Iterable[WatchingMonitor]]) -> None:
        self._monitors = monitors

    def describe(self) -> Iterator[Any]:
        """Yield all metrics without values."""
        yield from _Families().all()

    def collect(self) -> Iterator[Any]:
        """Yield all metrics with their values now."""
        families = _Families()
        found = sorted(self._snapshots(), key=lambda one: one[0].time_ns, reverse=True)
        seen: set[int] = set()
        for snapshot, monitor, facts in found:
            if snapshot.device_id not in seen:
                seen.add(snapshot.device_id)
                families.add(snapshot, monitor)
                families.simulated.add_metric([str(facts.device_id)], float(facts.simulated))
        sources: dict[str, bool] = {}
        for _, monitor, _ in found:
            for name, answer in monitor.sources.items():
                sources[name] = sources.get(name, False) or bool(answer)
        for name, there in sources.items():
            families.source.add_metric([name], float(there))
        yield from families.all()

    def _snapshots(self) -> Iterator[tuple[Snapshot, WatchingMonitor, RecordedDevice]]:
        for monitor in self._monitors():
            for facts in monitor.devices:
                try:
                    yield monitor.snapshot(facts.device_id), monitor, facts
                except UvmError:  # stopped, or begun anew, meanwhile
                    continue


class _Families:
    """One empty metric of each name."""

    def __init__(self) -> None:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        self.migrated = CounterMetricFamily(
            "rmm_uvm_migrated_bytes",
            "Bytes of managed memory moved, whatever the cause",
            labels=["device", "direction"],
        )
        self.by_cause = CounterMetricFamily(
            "rmm_uvm_migrated_by_cause_bytes",
            "Bytes of managed memory moved, by cause; with attribution",
            labels=["device", "direction", "cause"],
        )
        self.totals = {
            name: CounterMetricFamily(f"rmm_uvm_{name}", text, labels=["device"])
            for name, text in _TOTALS.items()
        }
        self.levels = {
            name: GaugeMetricFamily(f"rmm_uvm_{name}", text, labels=["device"])
            for name, text in _LEVELS.items()
        }
        self.budget = {
            name: CounterMetricFamily(f"rmm_uvm_budget_{name}", text, labels=["device"])
            for name, text in _BUDGET_TOTALS.items()
        } | {
            name: GaugeMetricFamily(
                f"rmm_uvm_budget_{name.removeprefix('budget_')}", text, labels=["device"]
            )
            for name, text in _BUDGET_LEVELS.items()
        }
        self.skipped = CounterMetricFamily(
            "rmm_uvm_prefetch_skipped",
            "Requests for which rmm_uvm prefetched nothing",
            labels=["device", "reason"],
        )
        self.findings = CounterMetricFamily(
            "rmm_uvm_findings", "Findings of the monitor", labels=["device", "kind"]
        )
        self.source = GaugeMetricFamily(
            "rmm_uvm_source_available", "Whether a source of figures is there", labels=["source"]
        )
        self.simulated = GaugeMetricFamily(
            "rmm_uvm_device_simulated",
            "Whether the figures are modelled, of a simulated device: 1, or 0 of a GPU",
            labels=["device"],
        )

    def all(self) -> Iterator[Any]:
        yield self.migrated
        yield self.by_cause
        yield from self.totals.values()
        yield from self.levels.values()
        yield from self.budget.values()
        yield from (self.skipped, self.findings, self.source, self.simulated)

    def add(self, snapshot: Snapshot, monitor: WatchingMonitor) -> None:
        """Add the figures of one device."""
        device = str(snapshot.device_id)
        for direction in _DIRECTIONS:
            self._put(self.migrated, [device, direction], getattr(snapshot, f"{direction}_bytes"))
            causes = (snapshot.causes or {}).get(f"{direction}_bytes", {})
            for cause, nbytes in causes.items():
                self._put(self.by_cause, [device, direction, cause], nbytes)
        for name, family in (self.totals | self.levels).items():
            self._put(family, [device], getattr(snapshot, name))
        for name, family in self.budget.items():
            self._put(family, [device], (snapshot.budget or {}).get(name))
        for reason, count in (snapshot.prefetch_skipped or {}).items():
            self._put(self.skipped, [device, reason], count)
        kinds = Counter(f.kind for f in monitor.findings if f.device_id == snapshot.device_id)
        for kind, count in kinds.items():
            self._put(self.findings, [device, kind], count)

    @staticmethod
    def _put(family: Any, labels: list[str], value: float | None) -> None:
        if value is not None:
            family.add_metric(labels, value)


def serve(
    port: int,
    host: str,
    monitors: Callable[[], Iterable[WatchingMonitor]],
    make: Callable[[], StartedMonitor] | None = None,
) -> MetricsServer:
    """Serve the figures of monitors; see `rmm_uvm.integrations.prometheus.start_http`.

    Parameters
    ----------
    port : int
        0 for any free one.
    host : str
        Address to listen on.
    monitors : callable, returns iterable of Monitor
        Asked at every request.
    make : callable or None
        Makes a monitor that starts with the server and stops with it.

    Raises
    ------
    AvailabilityError
        If ``prometheus_client`` is not installed, the port cannot be had, or the process can have
        no more threads.
    ConfigurationError
        If the port is no number from 0 to 65535.
    """
    exporting = collectors.library()
    registry = exporting.CollectorRegistry()
    registry.register(FiguresCollector(monitors))
    made = None if make is None else make()
    server = MetricsServer(port, host, exporting.make_wsgi_app(registry), made)
    if made is not None:
        try:
            made.start()
        except BaseException:
            server.close()
            raise
    return server

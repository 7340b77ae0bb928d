# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Figures for Prometheus: names, values, and a server that ends."""

from __future__ import annotations

import dataclasses
import re
import socket
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.integrations import prometheus
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.watch.monitor import Monitor
from rmm_uvm.watch.snapshot import Snapshot

METRICS_DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "use" / "metrics.md"
Values = Mapping[tuple[str, tuple[str, ...]], float]


@dataclasses.dataclass
class FakeMonitor:
    snapshots: tuple[Snapshot, ...]
    findings: tuple[Finding, ...] = ()
    sources: Mapping[str, Availability] = dataclasses.field(default_factory=dict)
    stopped: bool = False
    simulated: bool = False

    @property
    def devices(self) -> list[RecordedDevice]:
        return [
            RecordedDevice(one.device_id, "fake", "", 0, 0, self.simulated)
            for one in self.snapshots
        ]

    def snapshot(self, device: int) -> Snapshot:
        if self.stopped:
            raise AvailabilityError("not started")
        return next(one for one in self.snapshots if one.device_id == device)


FULL = Snapshot(
    device_id=0,
    time_ns=5,
    host_to_device_bytes=100,
    device_to_host_bytes=70,
    own_to_host_bytes=10,
    evicted_bytes_estimate=60,
    prefetched_bytes=50,
    discarded_bytes=40,
    cpu_faults=3,
    gpu_faults=4,
    footprint_bytes=3 << 30,
    managed_bytes=4 << 30,
    resident_bytes=2 << 30,
    device_used_bytes=2 << 30,
    capacity_bytes=2 << 30,
    device_total_bytes=3 << 30,
    causes={"device_to_host_bytes": {"eviction": 60, "user": 10}, "cpu_faults": 3},
    prefetch_skipped={"resident": 7},
    budget={
        "budget_bytes": 1 << 30,
        "resident_bytes": 1 << 29,
        "overshoot_bytes": 8,
        "foresees": True,
        "evicted_bytes": 30,
        "uncopied_bytes": 7,
        "copied_early_bytes": 9,
        "dropped_bytes": 31,
        "fetched_bytes": 32,
        "faulted_bytes": 33,
        "found_bytes": 29,
        "too_large": 2,
        "host_read_bytes": 31,
        "neighbor_bytes": 20,
        "from_neighbor_bytes": 15,
        "in_place_bytes": 11,
        "copied_beside_bytes": 12,
        "staged_bytes": 13,
        "given_back_bytes": 4,
        "given_back_at_once_bytes": 3,
        "held_back": 6,
        "reclaims": 5,
        "reclaim_wait_seconds": 0.25,
        "waited_seconds": 1.5,
        "harvested_bytes": 1,
        "peak_harvested_bytes": 9,
        "policy": "repeat",
    },
)
FINDING = Finding("eviction", 0, 1.0, 2.0, 1.0, "much is evicted", "use less")
MONITOR = FakeMonitor(
    (FULL,),
    (FINDING, FINDING, dataclasses.replace(FINDING, device_id=1)),
    {"nvml": Availability(False, "not there"), "device_memory": Availability(True)},
)


def text_of(*monitors: FakeMonitor) -> str:
    registry = prometheus_client.CollectorRegistry()
    registry.register(prometheus.MonitorCollector(lambda: monitors))  # type: ignore[arg-type]
    return prometheus_client.generate_latest(registry).decode()


def values_of(text: str) -> Values:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def exported_names() -> set[str]:
    return {sample[0] for sample in values_of(text_of(MONITOR))}


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def test_everything_known_is_exported_under_its_labels() -> None:
    assert values_of(text_of(MONITOR)) == {
        ("rmm_uvm_migrated_bytes_total", ("0", "host_to_device")): 100,
        ("rmm_uvm_migrated_bytes_total", ("0", "device_to_host")): 70,
        ("rmm_uvm_migrated_by_cause_bytes_total", ("eviction", "0", "device_to_host")): 60,
        ("rmm_uvm_migrated_by_cause_bytes_total", ("user", "0", "device_to_host")): 10,
        ("rmm_uvm_evicted_bytes_estimate_total", ("0",)): 60,
        ("rmm_uvm_prefetched_bytes_total", ("0",)): 50,
        ("rmm_uvm_discarded_bytes_total", ("0",)): 40,
        ("rmm_uvm_cpu_faults_total", ("0",)): 3,
        ("rmm_uvm_gpu_faults_total", ("0",)): 4,
        ("rmm_uvm_footprint_bytes", ("0",)): 3 << 30,
        ("rmm_uvm_managed_bytes", ("0",)): 4 << 30,
        ("rmm_uvm_resident_bytes", ("0",)): 2 << 30,
        ("rmm_uvm_capacity_bytes", ("0",)): 2 << 30,
        ("rmm_uvm_device_used_bytes", ("0",)): 2 << 30,
        ("rmm_uvm_oversubscription_factor", ("0",)): 1.5,
        ("rmm_uvm_budget_bytes", ("0",)): 1 << 30,
        ("rmm_uvm_budget_resident_bytes", ("0",)): 1 << 29,
        ("rmm_uvm_budget_overshoot_bytes", ("0",)): 8,
        ("rmm_uvm_budget_foresees", ("0",)): 1,
        ("rmm_uvm_budget_evicted_bytes_total", ("0",)): 30,
        ("rmm_uvm_budget_uncopied_bytes_total", ("0",)): 7,
        ("rmm_uvm_budget_copied_early_bytes_total", ("0",)): 9,
        ("rmm_uvm_budget_dropped_bytes_total", ("0",)): 31,
        ("rmm_uvm_budget_fetched_bytes_total", ("0",)): 32,
        ("rmm_uvm_budget_faulted_bytes_total", ("0",)): 33,
        ("rmm_uvm_budget_found_bytes_total", ("0",)): 29,
        ("rmm_uvm_budget_too_large_total", ("0",)): 2,
        ("rmm_uvm_budget_host_read_bytes_total", ("0",)): 31,
        ("rmm_uvm_budget_neighbor_bytes_total", ("0",)): 20,
        ("rmm_uvm_budget_from_neighbor_bytes_total", ("0",)): 15,
        ("rmm_uvm_budget_in_place_bytes_total", ("0",)): 11,
        ("rmm_uvm_budget_copied_beside_bytes_total", ("0",)): 12,
        ("rmm_uvm_budget_staged_bytes_total", ("0",)): 13,
        ("rmm_uvm_budget_given_back_bytes_total", ("0",)): 4,
        ("rmm_uvm_budget_given_back_at_once_bytes_total", ("0",)): 3,
        ("rmm_uvm_budget_held_back_total", ("0",)): 6,
        ("rmm_uvm_budget_reclaims_total", ("0",)): 5,
        ("rmm_uvm_budget_reclaim_wait_seconds_total", ("0",)): 0.25,
        ("rmm_uvm_budget_waited_seconds_total", ("0",)): 1.5,
        ("rmm_uvm_budget_harvested_bytes", ("0",)): 1,
        ("rmm_uvm_budget_peak_harvested_bytes", ("0",)): 9,
        ("rmm_uvm_prefetch_skipped_total", ("0", "resident")): 7,
        ("rmm_uvm_findings_total", ("0", "eviction")): 2,
        ("rmm_uvm_source_available", ("nvml",)): 0,
        ("rmm_uvm_source_available", ("device_memory",)): 1,
        ("rmm_uvm_device_simulated", ("0",)): 0,
    }


def test_what_is_unknown_is_absent_and_not_zero() -> None:
    gpu = {("rmm_uvm_device_simulated", ("0",)): 0}
    assert values_of(text_of(FakeMonitor((Snapshot(device_id=0, time_ns=0),)))) == gpu
    zero = values_of(text_of(FakeMonitor((Snapshot(device_id=0, time_ns=0, cpu_faults=0),))))
    assert zero == {("rmm_uvm_cpu_faults_total", ("0",)): 0, **gpu}


def test_figures_of_a_simulated_device_are_told_from_those_of_a_gpu() -> None:
    modelled = FakeMonitor((dataclasses.replace(FULL, device_id=1),), simulated=True)
    values = values_of(text_of(MONITOR, modelled))
    assert values["rmm_uvm_device_simulated", ("0",)] == 0
    assert values["rmm_uvm_device_simulated", ("1",)] == 1


def test_device_of_two_monitors_counts_once_by_the_longer_one() -> None:
    short = dataclasses.replace(FULL, time_ns=1, cpu_faults=1)
    other = dataclasses.replace(FULL, device_id=1, cpu_faults=9)
    values = values_of(text_of(FakeMonitor((short,)), MONITOR, FakeMonitor((other,))))
    assert values["rmm_uvm_cpu_faults_total", ("0",)] == 3
    assert values["rmm_uvm_cpu_faults_total", ("1",)] == 9


def test_monitor_that_stops_meanwhile_is_passed_over() -> None:
    assert values_of(text_of(FakeMonitor((FULL,), stopped=True))) == {}


def test_names_follow_the_convention() -> None:
    for family in text_string_to_metric_families(text_of(MONITOR)):
        assert re.fullmatch(r"rmm_uvm_[a-z_]+", family.name)
        assert family.documentation
        assert not re.search(r"_(ms|mb|kb|ns|percent|size)(_|$)", family.name)
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")


def test_every_exported_name_is_documented() -> None:
    section = METRICS_DOCUMENT.read_text().split("## Exported to Prometheus")[1].split("\n## ")[0]
    assert exported_names() == set(re.findall(r"`(rmm_uvm_\w+)`", section))


def test_server_serves_a_given_monitor_and_ends() -> None:
    with prometheus.start_http(0, monitor=MONITOR) as server:  # type: ignore[arg-type]
        assert server.port > 0
        assert "rmm_uvm_migrated_bytes_total" in get(server.url)
        assert server.url == f"http://127.0.0.1:{server.port}/metrics"
        # One that connects and says nothing does not hold the server up.
        idle = socket.create_connection(("127.0.0.1", server.port))
    idle.close()
    server.close()
    assert "closed" in repr(server)
    # Not by connecting: another process may have been given the port.
    assert server._server.socket.fileno() == -1


def test_server_without_a_monitor_starts_one_and_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    from rmm_uvm.watch.monitor import running

    with prometheus.start_http(0) as server:
        (started,) = running()
        assert 'rmm_uvm_migrated_bytes_total{device="0"' in get(server.url)
    assert running() == ()
    assert not started.running


def test_server_serves_the_monitor_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    with Monitor(publish=False) as monitor:
        with Monitor.start_http(0) as server:
            assert "rmm_uvm_capacity_bytes" in get(server.url)
        assert monitor.running


def test_port_that_is_taken_is_one_clear_line_and_starts_nothing() -> None:
    from rmm_uvm.watch.monitor import running

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AvailabilityError, match=f"port {port} of 127.0.0.1 is taken: choose"):
            prometheus.start_http(port)
    assert running() == ()


@pytest.mark.parametrize("port", [-1, 65536, "80", None, True])
def test_port_that_is_none_is_a_configuration_error(port: Any) -> None:
    with pytest.raises(ConfigurationError, match="a number from 0 to 65535"):
        prometheus.start_http(port, monitor=MONITOR)  # type: ignore[arg-type]


def test_host_that_is_no_text_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="host is 5; an address such as"):
        prometheus.start_http(0, 5, monitor=MONITOR)  # type: ignore[arg-type]


def test_host_that_is_not_ours_is_one_clear_line() -> None:
    with pytest.raises(AvailabilityError, match=r"cannot listen on 192\.0\.2\.1: "):
        prometheus.start_http(0, "192.0.2.1", monitor=MONITOR)  # type: ignore[arg-type]


def test_without_prometheus_client_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(AvailabilityError, match=r"pip install 'rmm-uvm\[prometheus\]'"):
        prometheus.start_http(0)
    assert "pip install" in prometheus.register().reason
    prometheus.unregister()


def test_prometheus_client_that_cannot_be_imported_is_told_with_its_own_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "prometheus_client.py").write_text("import of_something_else")
    monkeypatch.delitem(sys.modules, "prometheus_client")
    monkeypatch.syspath_prepend(tmp_path)
    reason = prometheus.register().reason
    assert reason == "prometheus_client cannot be imported: No module named 'of_something_else'"


def test_registering_twice_exports_once_until_both_are_taken_back() -> None:
    registry = prometheus_client.CollectorRegistry()
    assert prometheus.register(registry)
    assert prometheus.register(registry)
    prometheus.unregister(registry)
    assert b"rmm_uvm_footprint_bytes" in prometheus_client.generate_latest(registry)
    prometheus.unregister(registry)
    prometheus.unregister(registry)
    assert prometheus_client.generate_latest(registry) == b""


def test_names_that_another_exports_are_a_reason_and_no_error() -> None:
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Gauge("rmm_uvm_footprint_bytes", "of another", registry=registry)
    assert "Prometheus refused our names" in prometheus.register(registry).reason
    prometheus.unregister(registry)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Totals of transfers and the IPC pool, as Prometheus reads them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

import rmm_uvm
from rmm_uvm.dask.comm.statistics import CommTotals
from rmm_uvm.dask.worker.telemetry import CommCollector
from rmm_uvm.integrations.prometheus import MonitorCollector
from rmm_uvm.watch.telling import collectors

METRICS_DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "use" / "metrics.md"
TOTALS = CommTotals(1, 2, 3, 4, 5, 6, 7, 0.5, 9, 10, 11)


def text_of(pools: Mapping[int, int]) -> str:
    registry = prometheus_client.CollectorRegistry()
    registry.register(CommCollector(TOTALS.to_dict, lambda: pools))
    return prometheus_client.generate_latest(registry).decode()


def values_of(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_totals_and_pools_are_exported_under_their_labels() -> None:
    assert values_of(text_of({0: 256, 1: 0})) == {
        ("rmm_uvm_comm_bytes_total", ("sent", "staged")): 1,
        ("rmm_uvm_comm_bytes_total", ("sent", "direct")): 2,
        ("rmm_uvm_comm_bytes_total", ("sent", "overflow")): 3,
        ("rmm_uvm_comm_bytes_total", ("received", "staged")): 4,
        ("rmm_uvm_comm_bytes_total", ("received", "direct")): 5,
        ("rmm_uvm_comm_bytes_total", ("received", "overflow")): 6,
        ("rmm_uvm_comm_chunk_waits_total", ()): 7,
        ("rmm_uvm_comm_chunk_wait_seconds_total", ()): 0.5,
        ("rmm_uvm_comm_aborted_transfers_total", ()): 9,
        ("rmm_uvm_comm_refused_messages_total", ()): 10,
        ("rmm_uvm_comm_pulled_bytes_total", ()): 11,
        ("rmm_uvm_ipc_pool_bytes", ("0",)): 256,
        ("rmm_uvm_ipc_pool_bytes", ("1",)): 0,
    }
    assert len(values_of(text_of({}))) == len(dataclasses.fields(CommTotals))


def test_pool_is_absent_without_an_installation_and_told_with_one() -> None:
    registry = prometheus_client.CollectorRegistry()
    assert collectors.register(CommCollector, registry)

    without = values_of(prometheus_client.generate_latest(registry).decode())
    with rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", ipc_pool_size="4MiB"):
        told = values_of(prometheus_client.generate_latest(registry).decode())

    assert ("rmm_uvm_ipc_pool_bytes", ("0",)) not in without
    assert told["rmm_uvm_ipc_pool_bytes", ("0",)] == 4 << 20


def test_two_kinds_of_collectors_are_counted_apart() -> None:
    registry = prometheus_client.CollectorRegistry()

    assert collectors.register(CommCollector, registry)
    assert collectors.register(MonitorCollector, registry)
    collectors.unregister(MonitorCollector, registry)
    assert b"rmm_uvm_comm" in prometheus_client.generate_latest(registry)
    assert b"rmm_uvm_footprint" not in prometheus_client.generate_latest(registry)
    collectors.unregister(MonitorCollector, registry)
    collectors.unregister(CommCollector, registry)
    assert prometheus_client.generate_latest(registry) == b""


def test_every_exported_name_is_documented() -> None:
    section = METRICS_DOCUMENT.read_text().split("## Exported by Dask workers")[1].split("\n## ")[0]

    assert {name for name, _ in values_of(text_of({0: 1}))} == set(
        re.findall(r"`(rmm_uvm_\w+)`", section)
    )

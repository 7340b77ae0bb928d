# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a pool lives on the host, from what a monitor knows."""

from __future__ import annotations

import psutil
import pytest

import rmm_uvm
from rmm_uvm.dask.worker import host_pause
from rmm_uvm.dask.worker.host_pause import on_host_bytes
from rmm_uvm.watch.snapshot import Snapshot

GIB = 1 << 30
KNOWN = {
    "footprint_bytes": 100 * GIB,
    "managed_bytes": 120 * GIB,
    "resident_bytes": 80 * GIB,
    "device_to_host_bytes": 500 * GIB,
    "host_to_device_bytes": 470 * GIB,
}


@pytest.mark.parametrize(
    ("changes", "expected_gib"),
    [
        ({}, 30),
        # Nearly everything was freed: what is left on the host is dead.
        ({"footprint_bytes": 2 * GIB}, 2),
        # Dead data were discarded: they left, and are not on the host.
        ({"host_to_device_bytes": 0}, 40),
        # The pool took more than it ever wrote.
        ({"device_to_host_bytes": 0, "host_to_device_bytes": 0}, 0),
        # Data were made on the host.
        ({"device_to_host_bytes": 0}, 0),
        # Estimates may contradict one another.
        ({"resident_bytes": 130 * GIB}, 0),
    ],
)
def test_least_of_the_figures_is_what_lives_on_the_host(
    changes: dict[str, int], expected_gib: int
) -> None:
    assert on_host_bytes(Snapshot(0, 0, **{**KNOWN, **changes})) == expected_gib * GIB


@pytest.mark.parametrize("unknown", list(KNOWN))
def test_nothing_is_on_the_host_where_a_figure_is_not_known(unknown: str) -> None:
    assert on_host_bytes(Snapshot(0, 0, **{**KNOWN, unknown: None})) == 0


@pytest.mark.parametrize(
    ("evicted", "mapped", "told"),
    [(0, 0, 1000), (300, 0, 1300), (300, 100, 1200), (300, 300, 1000), (300, 900, 1000)],
)
def test_memory_that_is_told_has_what_was_evicted_and_is_not_mapped(
    monkeypatch: pytest.MonkeyPatch, evicted: int, mapped: int, told: int
) -> None:
    monkeypatch.setattr(host_pause, "evicted_bytes", lambda: evicted)
    monkeypatch.setattr(host_pause, "file_backed_bytes", lambda: 50)
    reader = host_pause.WithEvicted(lambda: 1000)
    monkeypatch.setattr(host_pause, "file_backed_bytes", lambda: 50 + mapped)
    assert reader() == told


def test_library_that_was_loaded_before_an_eviction_is_not_taken_for_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = host_pause.WithEvicted(lambda: 1000)
    monkeypatch.setattr(host_pause, "file_backed_bytes", lambda: 1 << 40)
    monkeypatch.setattr(host_pause, "evicted_bytes", lambda: 0)
    reader()
    monkeypatch.setattr(host_pause, "evicted_bytes", lambda: 300)
    assert reader() == 1300


def test_file_backed_memory_of_this_process_is_some_and_less_than_all() -> None:
    assert 0 < host_pause.file_backed_bytes() < psutil.Process().memory_info().rss


def test_what_lives_on_the_host_is_that_of_the_pools_of_all_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_pause, "on_host_bytes", lambda snapshot: 10**snapshot.device_id)
    for device_id, monitor in ((0, True), (1, True), (2, False)):
        rmm_uvm.reinitialize("16MiB", "32MiB", device_id, driver="simulated:64MiB", monitor=monitor)
    assert host_pause.evicted_bytes() == 11

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs on a simulated node beside each other: the benchmark runs, and equally every time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

MEMORY = "128MiB"
BURST_MEMORY = "512MiB"


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    folder = str(Path(__file__).resolve().parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("neighbors_consolidation")
    finally:
        sys.path.remove(folder)


def test_scenario_run_again_gives_equal_figures(benchmark: ModuleType) -> None:
    ways = [benchmark.WAYS_BY_NAME[name] for name in (benchmark.LOCAL, benchmark.PARALLEL)]
    for scenario in benchmark.SCENARIOS:
        for way in ways:
            found = [benchmark.run(scenario, way, 0.4, memory=MEMORY) for _ in range(2)]
            assert found[0] == found[1]
            assert found[0]["neighbor_bytes"] > 0


def test_scenario_on_the_host_only_uses_no_peer(benchmark: ModuleType) -> None:
    found = benchmark.run(benchmark.SCENARIOS[0], benchmark.WAYS[0], 0.4, memory=MEMORY)
    assert found["neighbor_bytes"] == found["from_neighbor_bytes"] == 0
    assert found["evicted_bytes"] > 0
    row = benchmark.compared(found, found)
    assert row["speedup"] == row["owner_slowdown"] == 1


def test_burst_fetched_again_takes_the_same_time(benchmark: ModuleType) -> None:
    rows = [
        benchmark.burst_row(benchmark.JOINED[0], benchmark.MACHINE, BURST_MEMORY) for _ in range(2)
    ]
    assert rows[0] == rows[1]
    assert rows[0]["staged_bytes"] > 0

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plan for G10's BERT, which announces its uses: a budget, since what it moves is beside kernels.

The product itself, paced, takes 1.10 times its kernels in a step with a budget, and 1.36 without
(`g10_networks`). A plan is of all three steps, of which the first is learnt from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from rmm_uvm.planner import plan
from rmm_uvm.planner.outcome import Card
from rmm_uvm.simulator import load_machine
from rmm_uvm.support.units import whole_blocks
from rmm_uvm.trace import read

Script = Callable[[str], ModuleType]
LINK_BYTES_PER_NS = 15.754


def planned(script: Script, folder: Path, fitting_seconds: float | None = None) -> Card:
    trace = folder / "bert.trace"
    script("g10_networks").write_trace("BERT", trace)
    rates = {"to_device_bytes_per_ns": LINK_BYTES_PER_NS, "to_host_bytes_per_ns": LINK_BYTES_PER_NS}
    [card] = plan(
        trace,
        whole_blocks(40 * 10**9),
        machine=load_machine("a100-pcie4").replace(**rates),
        fitting_seconds=fitting_seconds,
        announced=True,
    ).cards
    return card


def test_budget_is_advised_since_kernels_compute_while_it_moves(
    script: Script, tmp_path: Path
) -> None:
    card = planned(script, tmp_path)
    slowdowns = {(way.prefetch, way.eviction, way.sized): way.slowdown for way in card.ways}
    assert slowdowns["auto", None, False] == pytest.approx(1.568, abs=0.002)
    assert slowdowns["auto", "repeat", False] == pytest.approx(1.484, abs=0.002)
    assert slowdowns["auto", "repeat", True] == pytest.approx(1.442, abs=0.002)
    assert card.settings.eviction == "repeat"
    assert card.settings.keywords()["device_budget"] == whole_blocks(40 * 10**9) - (128 << 20)


def test_budget_hides_nothing_behind_kernels_that_take_no_time(
    script: Script, tmp_path: Path
) -> None:
    ways = planned(script, tmp_path, fitting_seconds=1e-5).ways
    waited = {(way.prefetch, way.eviction, way.sized): way.driver_seconds for way in ways}
    alone = waited["auto", None, False]
    assert alone is not None
    assert waited["auto", "repeat", False] == pytest.approx(13.42, abs=0.02)
    assert alone == pytest.approx(12.63, abs=0.02)


def test_trace_has_the_kernels_of_three_steps_with_their_times(
    script: Script, tmp_path: Path
) -> None:
    networks = script("g10_networks")
    trace = tmp_path / "bert.trace"
    networks.write_trace("BERT", trace)
    kernels = networks._networks()["BERT"]["kernels"]
    found = read(trace)
    assert len(found.kernels) == 1 + 3 * len(kernels)
    [(end_seconds, _)] = found.annotations
    # Data that are there before take a microsecond.
    assert end_seconds == pytest.approx(1e-6 + 3 * sum(each[0] for each in kernels) / 1e6)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plan for G10's BERT, which announces its uses: a budget, since what it moves is beside kernels.

The product itself, paced, takes 1.10 times its kernels in a step with a budget, and 1.36 without
(`g10_networks`). A plan is of all three steps, of which the first is learnt from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from rmm_uvm.planner import plan
from rmm_uvm.planner.outcome import Card
from rmm_uvm.planner.workload.events import (
    ALLOCATE,
    FREE,
    REPLAY_DTYPE,
    TOUCH,
    WRITES,
    Slab,
    Workload,
)
from rmm_uvm.simulator import load_machine
from rmm_uvm.support.units import whole_blocks
from rmm_uvm.torch import Program

Script = Callable[[str], ModuleType]
BASE = 1 << 40
LINK_BYTES_PER_NS = 15.754


class Recorder:
    """Takes a program's events as a recording has them; sizes that were freed are used again."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.end = BASE
        self._sizes: dict[int, int] = {}
        self._unused: defaultdict[int, list[int]] = defaultdict(list)

    def _add(self, kind: int, flags: int, address: int, nbytes: int) -> None:
        self.rows.append((kind, flags, 0, 0, address, nbytes, 0))

    def allocate(self, nbytes: int) -> int:
        unused = self._unused[nbytes]
        address = unused.pop() if unused else self.end
        if address == self.end:
            self.end += -(-nbytes // 256) * 256
        self._sizes[address] = nbytes
        self._add(ALLOCATE, 0, address, nbytes)
        return address

    def free(self, allocation: int) -> None:
        nbytes = self._sizes.pop(allocation)
        self._unused[nbytes].append(allocation)
        self._add(FREE, 0, allocation, nbytes)

    def given(self, use: Any) -> None:
        self._add(TOUCH, WRITES, use.allocation, use.nbytes)

    def kernel(self, uses: Any, compute_seconds: float) -> None:
        del compute_seconds  # a recording does not have it
        for use in uses:
            self._add(TOUCH, WRITES if use.writes else 0, use.allocation, use.nbytes)


def workload_of(program: Program) -> Workload:
    recorder = Recorder()
    program.replay(recorder)
    events = np.array(recorder.rows, REPLAY_DTYPE)
    made = events[events["kind"] == ALLOCATE]
    return Workload(
        events=events,
        slabs=(Slab(BASE, whole_blocks(recorder.end - BASE + (2 << 20))),),
        stages=("",),
        source=Path("bert.trace"),
        kind="trace",
        touches_assumed=False,
        peak_live_bytes=program.peak_bytes,
        allocated_bytes=int(made["nbytes"].sum()),
        allocations=len(made),
        seconds=program.compute_seconds,
        device_name="simulated",
    )


def planned(script: Script, compute_fraction: float) -> Card:
    program = script("g10_networks").program("BERT")
    rates = {"to_device_bytes_per_ns": LINK_BYTES_PER_NS, "to_host_bytes_per_ns": LINK_BYTES_PER_NS}
    [card] = plan(
        workload_of(program),
        whole_blocks(40 * 10**9),
        machine=load_machine("a100-pcie4").replace(**rates),
        fitting_seconds=program.compute_seconds * compute_fraction,
        announced=True,
    ).cards
    return card


def test_budget_is_advised_since_kernels_compute_while_it_moves(script: Script) -> None:
    card = planned(script, 1.0)
    slowdowns = {(way.prefetch, way.eviction, way.sized): way.slowdown for way in card.ways}
    assert slowdowns["auto", None, False] == pytest.approx(1.571, abs=0.002)
    assert slowdowns["auto", "repeat", False] == pytest.approx(1.448, abs=0.002)
    assert slowdowns["auto", "repeat", True] == pytest.approx(1.379, abs=0.002)
    assert card.settings.eviction == "repeat"
    assert card.settings.keywords()["device_budget"] == whole_blocks(40 * 10**9) - (128 << 20)


def test_budget_hides_nothing_behind_kernels_that_take_no_time(script: Script) -> None:
    ways = planned(script, 1e-6).ways
    waited = {(way.prefetch, way.eviction, way.sized): way.driver_seconds for way in ways}
    alone = waited["auto", None, False]
    assert alone is not None
    assert waited["auto", "repeat", False] == pytest.approx(13.42, abs=0.02)
    assert alone == pytest.approx(12.63, abs=0.02)

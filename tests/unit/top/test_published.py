# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `rmm-uvm top` believes of a board: figures that are none take nothing from the others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.top.gather import Gatherer
from rmm_uvm.top.published import published
from rmm_uvm.top.render import render
from rmm_uvm.top.seams import Seams
from rmm_uvm.watch.telling.board import Board

from .fakes import NOBODY_JOINED, FakeClock

FIGURES: dict[str, Any] = {
    "device_id": 0,
    "time_ns": 10**9,
    "footprint_bytes": 5 << 30,
    "host_to_device_bytes": 0,
    "budget": {"budget_bytes": 1 << 30, "policy": "lru"},
    "simulated": True,
}


@pytest.fixture
def place(tmp_path: Path) -> Board:
    return Board([tmp_path])


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)


def publish(place: Board, *snapshots: dict[str, Any]) -> None:
    others: dict[str, Any] = {"devices": [], "sources": {}, "findings": []}
    place.publish({"interval_seconds": 1, "snapshots": snapshots, **others})


def test_figures_that_a_view_shows_are_published(place: Board, tmp_path: Path) -> None:
    publish(place, {**FIGURES, "causes": {"columns": []}})
    [found] = published([tmp_path])
    assert (found.pid, found.device_id, found.time_seconds) == (os.getpid(), 0, 1.0)
    assert found.figures["footprint_bytes"] == 5 << 30
    assert found.figures["budget"]["budget_bytes"] == 1 << 30
    assert found.figures["budget"]["overshoot_bytes"] is None
    assert found.figures["simulated"] is True
    assert "causes" not in found.figures


@pytest.mark.parametrize(
    "wrong",
    [{"device_id": "first"}, {"device_id": -1}, {"time_ns": None}, {"time_ns": float("nan")}],
    ids=str,
)
def test_figures_of_no_device_or_time_are_passed_over(
    place: Board, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    publish(place, {**FIGURES, **wrong}, {**FIGURES, "device_id": 1})
    assert [found.device_id for found in published([tmp_path])] == [1]


@pytest.mark.parametrize("wrong", ["5GiB", [], True, 1.5, -1, 2**64, 10**400], ids=repr)
def test_figure_that_is_no_count_is_not_known_and_the_view_stands(
    place: Board, tmp_path: Path, wrong: object
) -> None:
    clock = FakeClock()
    seams = Seams(
        processes=list,
        attach=lambda *_: pytest.fail("attached"),
        published=lambda: published([tmp_path]),
        devices=lambda: ((), ""),
        harvest=lambda: NOBODY_JOINED,
    )
    gatherer = Gatherer(seams, clock=clock)
    publish(place, FIGURES)
    gatherer.look()
    clock.now += 1
    names = ("footprint_bytes", "host_to_device_bytes", "gpu_faults")
    later = {**FIGURES, "time_ns": 2 * 10**9, "budget": {"budget_bytes": wrong}}
    publish(place, later | dict.fromkeys(names, wrong))

    [row] = gatherer.look().processes

    assert row.footprint_bytes is row.budget_bytes is row.in_bytes_per_second is None
    assert render(gatherer.look(), 80) is not None


def test_budget_that_is_none_is_left_out(place: Board, tmp_path: Path) -> None:
    publish(place, {**FIGURES, "budget": "1GiB", "simulated": "yes"})
    [found] = published([tmp_path])
    assert "budget" not in found.figures
    assert found.figures["simulated"] is False

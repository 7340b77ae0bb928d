# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reads what processes publish of themselves, as far as it can be believed.

A board's file is of this user, yet of any version of this package and of any program. What is not
of its type is as if it were not there: one process must not take away the view of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rmm_uvm.machine.process_facts import name_of, user_of
from rmm_uvm.top.seams import PublishedDevice
from rmm_uvm.top.view import BUDGET_FIGURES, FIGURES
from rmm_uvm.watch.telling.board import read_board

__all__ = ["published"]

_MOST = 2**64  # totals and levels are of 64 bits, and a rate of two is a number that can be drawn


def published(directories: Sequence[Path] | None = None) -> Sequence[PublishedDevice]:
    """Return what the monitors of this user publish, one for each device.

    Parameters
    ----------
    directories : sequence of Path or None
        Where to look; None: `rmm_uvm.watch.telling.board.board_directories`.
    """
    found = []
    for each in read_board(directories):
        for figures in map(_figures, each.snapshots):
            if figures is None:
                continue
            found.append(
                PublishedDevice(
                    pid=each.pid,
                    name=name_of(each.pid),
                    command=each.command,
                    user=user_of(each.pid),
                    device_id=figures["device_id"],
                    time_seconds=figures["time_ns"] / 1e9,
                    age_seconds=each.age_seconds,
                    figures=figures,
                )
            )
    return found


def _figures(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the figures that a view shows; None where not even the device is told."""
    found: dict[str, Any] = {name: _count(told.get(name)) for name in FIGURES}
    found |= {name: _count(told.get(name)) for name in ("device_id", "time_ns")}
    if found["device_id"] is None or found["time_ns"] is None:
        return None
    found["simulated"] = told.get("simulated") is True
    budget = told.get("budget")
    if isinstance(budget, dict):
        found["budget"] = {name: _count(budget.get(name)) for name in BUDGET_FIGURES}
    return found


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST else None

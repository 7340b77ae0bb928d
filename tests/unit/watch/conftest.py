# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Monitors of a simulated device, whose time stands still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rmm_uvm
from rmm_uvm._lib.monitor import FakeClock
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.watch.monitor import Monitor

from .monitors import Make


@pytest.fixture(autouse=True)
def _board_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB")


@pytest.fixture
def make(device: SimulatedDevice) -> Iterator[Make]:
    """Make monitors whose time stands still until their `_clock` is advanced."""
    made: list[Monitor] = []

    def make_one(**keywords: object) -> Monitor:
        keywords = {"on_finding": None, "publish": False, "driver": device, **keywords}
        monitor = Monitor(**keywords)  # type: ignore[arg-type]
        monitor._clock = FakeClock()
        made.append(monitor)
        return monitor

    yield make_one
    for monitor in made:
        monitor.stop()

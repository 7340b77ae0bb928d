# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A bound of the link uses the rates of the way that a budget takes."""

from __future__ import annotations

import pytest

from .scripts import script

past_the_edge = script("benchmarks", "residency/past_the_edge")

SLOW = {"to_device": 10.0, "to_host": 5.0, "fault": 2.0}
FAST = {"to_device": 20.0, "to_host": 10.0, "fault": 2.0}


@pytest.mark.parametrize(
    ("mode", "link_seconds"), [("repeat", 10.0), ("lru", 10.0), ("repeat, by libcuda", 20.0)]
)
def test_link_takes_what_the_way_of_the_budget_takes(mode: str, link_seconds: float) -> None:
    row = {"mode": mode, "to_device_bytes": 100, "to_host_bytes": 100}
    speeds = {"default": FAST, past_the_edge.BY_LIBCUDA: SLOW}
    bounds = past_the_edge.with_bounds(row, {"seconds": 1.0}, speeds)
    assert bounds["link_seconds"] == link_seconds
    assert bounds["fault_driven_seconds_expected"] == 1.0 + 50.0 + link_seconds


def test_way_by_libcuda_is_one_that_is_compared() -> None:
    assert not past_the_edge.modes(64 << 20)[past_the_edge.BY_LIBCUDA].direct

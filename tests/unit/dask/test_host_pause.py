# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a pool lives on the host, from what a monitor knows."""

from __future__ import annotations

import pytest

from rmm_uvm.dask.host_pause import on_host_bytes
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

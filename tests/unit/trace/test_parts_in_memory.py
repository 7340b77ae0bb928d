# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Parts that will be joined: their memory goes back to the system, whatever lies behind it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rmm_uvm.trace.events import EVENT_DTYPE, joined, on_its_own

ROWS = 40_000  # 1.8 MiB: the C library would keep these among its own


def resident_bytes() -> int:
    """Return what of this process' memory is there."""
    found = re.search(r"VmRSS:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.parametrize("rows", [0, 1, ROWS])
def test_copy_has_the_same_rows_and_may_be_written(rows: int) -> None:
    part = np.zeros(rows, EVENT_DTYPE)
    part["address"] = np.arange(rows)
    copy = on_its_own(part)
    assert np.array_equal(copy, part)
    copy["address"] += 1
    assert not len(part) or part["address"][0] == 0


def test_memory_of_each_part_goes_back_when_it_is_joined() -> None:
    part = np.ones(ROWS, EVENT_DTYPE)
    parts = [on_its_own(part) for _ in range(32)]
    before_bytes = resident_bytes()
    parts[5] = parts[20] = on_its_own(part[:0])  # two in the middle
    assert before_bytes - resident_bytes() > 1.9 * part.nbytes
    whole = joined(parts, EVENT_DTYPE)
    assert len(whole) == 30 * ROWS
    assert resident_bytes() - before_bytes < part.nbytes

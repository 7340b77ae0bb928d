# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory measuring takes: never more than half of what is free, nor than the cap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.simulator.measuring.procedure import COPY_BYTES, MOST_REGION_BYTES, region_bytes_for

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("free_bytes", "host_bytes", "cap_bytes", "expected_bytes"),
    [
        (139 * GIB, 200 * GIB, None, GIB),
        (139 * GIB, 200 * GIB, 24 * GIB, GIB),
        (139 * GIB, 200 * GIB, GIB - 1, 512 * MIB),
        (2 * GIB + 511 * MIB, 200 * GIB, None, 512 * MIB),
        (139 * GIB, 3 * GIB // 2, None, 512 * MIB),
        (GIB, GIB, 256 * MIB, 256 * MIB),
    ],
)
def test_region_is_a_power_of_two_below_every_bound(
    free_bytes: int, host_bytes: int, cap_bytes: int | None, expected_bytes: int
) -> None:
    assert region_bytes_for(free_bytes, host_bytes, cap_bytes) == expected_bytes


@pytest.mark.parametrize(
    ("free_bytes", "host_bytes", "cap_bytes", "message"),
    [
        (1000 * MIB, GIB, None, r"needs 1\.00 GiB of device memory, there are 1000\.00 MiB"),
        (139 * GIB, 100 * MIB, None, r"needs 1\.00 GiB of host memory, there are 100\.00 MiB"),
        (139 * GIB, GIB, 255 * MIB, r"256\.00 MiB of managed memory under RMM_UVM_MANAGED_LIMIT"),
        (0, 0, 0, "device memory"),
    ],
)
def test_region_too_small_names_what_is_short(
    free_bytes: int, host_bytes: int, cap_bytes: int | None, message: str
) -> None:
    with pytest.raises(AvailabilityError, match=message):
        region_bytes_for(free_bytes, host_bytes, cap_bytes)


@given(st.integers(GIB, 2**40), st.integers(GIB, 2**40), st.integers(256 * MIB, 2**40))
def test_region_leaves_as_much_free_as_it_takes(free: int, host: int, cap: int) -> None:
    region_bytes = region_bytes_for(free, host, cap)
    assert region_bytes % (16 * MIB) == 0
    assert region_bytes <= min(cap, MOST_REGION_BYTES)
    assert 2 * region_bytes + 2 * COPY_BYTES <= min(free, host)

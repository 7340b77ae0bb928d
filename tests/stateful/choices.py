# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What programs choose from: sizes, budgets, streams, and the calls that fail."""

from __future__ import annotations

import hypothesis.strategies as st

MIB = 1 << 20
DEVICE_BYTES = 64 * MIB
POOL_BYTES = 40 * MIB
MOST_BYTES = 96 * MIB
# Calls that may fail at any time without a loss: the answers of a driver that is out of something.
CALLS = (
    "memory",
    "allocate_managed",
    "prefetch",
    "discard",
    "discard_and_prefetch",
    "advise",
    "order",
    "mark",
    "own_stream",
    "neighbor_memory",
    "read_neighbor_load",
    "measure_links",
)
CODES = ("out_of_memory", "invalid_value", "not_supported", "driver_error")
POLICIES = ("repeat", "lru", "fifo", "correlation")

sizes_bytes = st.one_of(
    st.integers(1, 700),
    st.integers(1, 4 * MIB),
    st.sampled_from([256, 4096, 2 * MIB - 256, 2 * MIB, 2 * MIB + 1, 4 * MIB, 6 * MIB + 257]),
)
numbers = st.integers(0, 31)
streams = st.sampled_from([0, 7, 9])
budgets_bytes = st.sampled_from([8 * MIB, 10 * MIB, 16 * MIB, 24 * MIB])

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The layout of a sample: one row of what a monitor records, for one device.

The compiled sampler writes the same layout (``cpp/include/rmm_uvm/monitor/sample.hpp``). Totals
count since the monitor began; levels are of the moment. docs/use/metrics.md has source and
exactness.
"""

from __future__ import annotations

import enum

import numpy as np

__all__ = ["SAMPLE_DTYPE", "Known"]

SAMPLE_DTYPE = np.dtype(
    [
        ("time_ns", "<u8"),
        ("host_to_device_bytes", "<u8"),
        ("device_to_host_bytes", "<u8"),
        ("own_to_host_bytes", "<u8"),
        ("evicted_bytes_estimate", "<u8"),
        ("prefetched_bytes", "<u8"),
        ("discarded_bytes", "<u8"),
        ("cpu_faults", "<u8"),
        ("gpu_faults", "<u8"),
        ("footprint_bytes", "<u8"),
        ("managed_bytes", "<u8"),
        ("resident_bytes", "<u8"),
        ("device_used_bytes", "<u8"),
        ("waited_ns", "<u8"),
        ("device_id", "<i4"),
        ("known", "<u4"),
    ]
)


class Known(enum.IntFlag):
    """Bits of the field ``known``: what is known in a sample. The rest is 0 and means nothing."""

    COUNTERS = 1
    FAULTS = 2
    FOOTPRINT = 4
    DEVICE = 8
    RESIDENT = 16
    RESIDENT_EXACT = 32

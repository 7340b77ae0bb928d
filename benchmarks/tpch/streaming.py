# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""cudf-polars' streaming executor with RapidsMPF, set up as it would be on a card of some size."""

from __future__ import annotations

from typing import Any

SPILLS_FROM = 0.8  # of device memory: its default
PARTITION = 0.025
BROADCAST = 0.15


def streaming_engine(budget_bytes: int) -> Any:
    """Return an engine whose memory is RMM's current one, which is bounded by the caller.

    Its defaults follow the size of the card; they are given here for one of `budget_bytes`. Nothing
    is left to the CPU.
    """
    from cudf_polars.engine.options import StreamingOptions
    from cudf_polars.engine.spmd import SPMDEngine

    return SPMDEngine.from_options(
        StreamingOptions(
            spill_device_limit=str(int(SPILLS_FROM * budget_bytes)),
            target_partition_size=int(PARTITION * budget_bytes),
            broadcast_limit=int(BROADCAST * budget_bytes),
            pinned_memory=True,
            fallback_mode="silent",
            raise_on_fail=True,
        )
    )

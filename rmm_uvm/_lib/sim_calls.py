# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The calls that `SimulatedDevice.fail_call` can let fail; a test holds them to the model."""

from __future__ import annotations

__all__ = ["INJECTED"]

_CALLS = (
    # Of drivers.
    *("memory", "unmanaged_bytes", "allocate_managed", "allocate_device", "free_managed"),
    *("prefetch", "migrate", "discard", "discard_and_prefetch", "advise", "order"),
    *("mark", "own_stream", "graph_of", "synchronize", "not_on_host"),
    *("touch", "cpu_touch", "compute"),
    *("neighbor_memory", "open_neighbor", "read_neighbor_load", "measure_links"),
    # Of counters, events and windows.
    *("available", "request_faults", "start", "open_moves", "begin"),
    # Of transfers, their marks and their events.
    *("find_memory", "copy", "take_staging", "wait_for", "done", "wait"),
    *("ipc_memory_handle", "open_ipc_memory", "close_ipc_memory"),
    *("make_ipc_event", "open_ipc_event", "record", "make_wait"),
)
INJECTED = {call: f"injected {call}".encode() for call in _CALLS}
"""By call, what a failure of it that was planned is told by."""

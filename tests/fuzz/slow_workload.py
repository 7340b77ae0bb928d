# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a workload holds what it promises, event by event and without numpy's help."""

from __future__ import annotations

from rmm_uvm.planner.workload.events import ALLOCATE, FREE, TOUCH, Workload

_BLOCK_BYTES = 2 << 20


def problem(workload: Workload) -> str:
    """Return what is wrong, or an empty text."""
    live: dict[int, int] = {}
    live_bytes = peak = allocated = allocations = latest = 0
    for number, row in enumerate(workload.events.tolist()):
        kind, _, stage, _, address, nbytes, time_ns = row
        if nbytes <= 0 or stage >= len(workload.stages) or time_ns < latest:
            return f"event {number} is {row}"
        if not any(
            slab.address <= address and address + nbytes <= slab.address + slab.nbytes
            for slab in workload.slabs
        ):
            return f"event {number} at {address:#x} is in no slab"
        latest = time_ns
        if kind == ALLOCATE:
            for other, other_bytes in live.items():
                if other < address + nbytes and address < other + other_bytes:
                    return f"event {number} overlaps {other:#x}"
            live[address] = nbytes
            live_bytes += nbytes
            allocated += nbytes
            allocations += 1
            peak = max(peak, live_bytes)
        elif kind == FREE:
            if live.pop(address, None) != nbytes:
                return f"event {number} frees what is not live"
            live_bytes -= nbytes
        elif kind != TOUCH:
            return f"event {number} is of no kind"
        elif not all(_holds(live, one) for one in (address, address + nbytes - 1)):
            return f"event {number} touches what is not live"
    if latest > workload.seconds * 1e9 + 1000:
        return f"{workload.seconds} seconds, and an event at {latest} ns"
    told = (workload.peak_live_bytes, workload.allocated_bytes, workload.allocations)
    if told != (peak, allocated, allocations):
        return f"peak, allocated bytes, allocations: {told}, not {(peak, allocated, allocations)}"
    return _slabs_problem(workload)


def _holds(live: dict[int, int], address: int) -> bool:
    return any(begin <= address < begin + nbytes for begin, nbytes in live.items())


def _slabs_problem(workload: Workload) -> str:
    end = -1
    for slab in workload.slabs:
        if slab.address % _BLOCK_BYTES or slab.nbytes % _BLOCK_BYTES or slab.nbytes <= 0:
            return f"{slab} is not of whole blocks"
        if slab.address <= end:
            return f"{slab} belongs to the one before"
        end = slab.address + slab.nbytes
    return ""

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a simulator counted: plain values."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Counters:
    """Sums since a simulator was made, and levels now; bytes and counts.

    Attributes
    ----------
    to_device_bytes, to_host_bytes, peer_bytes : int
        Migrated from the host to GPUs, to the host (evictions included), between GPUs.
    remote_bytes : int
        Accessed by kernels where they lay, through a mapping.
    evicted_bytes, evicted_blocks, dropped_bytes : int
        Written back to make room; blocks whose device memory was taken; discarded bytes that left
        without a copy.
    filled_bytes : int
        Device memory that came without a copy.
    gpu_faults, fault_services, fault_batches, cpu_faults : int
        Pages that faulted, duplicates included; blocks served, once for each batch; batches;
        faults of the CPU.
    block_operations : int
        Blocks migrated, filled, evicted, discarded, or found where they should be.
    managed_bytes, device_bytes, resident_bytes, peak_resident_bytes, host_page_bytes : int
        Now: managed memory, cudaMalloc memory, device memory behind managed pages and the most of
        it, host memory behind them.
    """

    to_device_bytes: int
    to_host_bytes: int
    peer_bytes: int
    remote_bytes: int
    evicted_bytes: int
    evicted_blocks: int
    dropped_bytes: int
    filled_bytes: int
    gpu_faults: int
    fault_services: int
    fault_batches: int
    cpu_faults: int
    block_operations: int
    managed_bytes: int
    device_bytes: int
    resident_bytes: int
    peak_resident_bytes: int
    host_page_bytes: int

    def since(self, earlier: Counters) -> Counters:
        """Return what was added since; levels are those of now."""
        return Counters(
            **{
                one.name: getattr(self, one.name)
                - (0 if one.name in _LEVELS else getattr(earlier, one.name))
                for one in fields(self)
            }
        )


_LEVELS = frozenset(
    ("managed_bytes", "device_bytes", "resident_bytes", "peak_resident_bytes", "host_page_bytes")
)

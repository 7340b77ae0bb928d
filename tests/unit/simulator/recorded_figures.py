# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What was measured on an H200, PCIe 5, driver 580.159.04, on 2026-11-21, before the model was.

The profile ``h200-pcie5`` was written from these by hand. Figures that `MeasuredFigures` has
and these have not were not measured then.
"""

from __future__ import annotations

from rmm_uvm.simulator.measuring import MeasuredFigures, Timing

MIB, GIB = 1 << 20, 1 << 30


def at(bytes_per_ns: float, nbytes: int = 2 * GIB) -> Timing:
    """Return the time of so many bytes at a rate."""
    return Timing(nbytes, nbytes / bytes_per_ns / 1e9)


H200 = MeasuredFigures(
    device_bytes=139 * GIB,
    devices=2,
    copy_to_device=at(55.5),
    copy_to_host=at(55.4),
    remote_read=at(51),
    prefetch_call=Timing(2 * MIB, 1.9e-6),
    discard_call=Timing(2 * MIB, 2.0e-6),
    deferred_call=Timing(32 * MIB, 10e-6),
    prefetch_fresh=Timing(2 * GIB, 6.0e-3),
    prefetch_resident=Timing(1 * GIB, 450e-6),
    prefetch_to_device=at(51),
    prefetch_to_host=at(24),
    prefetch_to_cold_host=at(4.6),
    # Single calls: benchmarks/results/driver_facts.json, batch_costs.
    prefetch_calls=(
        Timing(2 * MIB, 71.05e-6),
        Timing(16 * MIB, 346.7e-6),
        Timing(128 * MIB, 2.636e-3),
    ),
    queued_prefetches=(at(18.7, 2 * MIB), at(26.7, 16 * MIB), at(39.9, 64 * MIB)),
    discarded_to_host=Timing(2 * GIB, 71e-3),
    discard=Timing(2 * GIB, 6.4e-3),
    discard_and_prefetch_on_device=Timing(2 * GIB, 3.1e-3),
    discard_and_prefetch_on_host=Timing(2 * GIB, 9.9e-3),
    # 157 to 173 ms were seen, by this kernel 163 to 171 without an observer.
    fault_stream=Timing(2 * GIB, 165e-3),
    first_touch_stream=Timing(2 * GIB, 107e-3),
    discarded_write=Timing(2 * GIB, 7.771),
    cpu_touch=Timing(1 * GIB, 171e-3),
    allocate_managed=Timing(64 * MIB, 6e-6),
    free_managed=Timing(64 * MIB, 6e-6),
    allocate_device=Timing(64 * MIB, 30e-6),
    free_device=Timing(64 * MIB, 35e-6),
)

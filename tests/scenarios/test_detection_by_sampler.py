# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled sampler's own samples lead to the same findings, within three of them."""

from __future__ import annotations

from typing import Any

import pytest

import rmm_uvm
from rmm_uvm._lib.monitor import FakeClock, Sampler, Slot, levels_of
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.watch.advisor import Advisor
from rmm_uvm.watch.telling.delivery import Delivery

MIB = 1 << 20
DEVICE_BYTES = 64 * MIB
PIECE_BYTES = 4 * MIB


def kinds_after_cycles(pieces: int, cycles: int) -> list[str]:
    """Cycle over pieces of a managed pool, with a sample after each, and return what was found."""
    device = rmm_uvm.simulated_device(DEVICE_BYTES)
    mr: Any = rmm_uvm.managed_pool(
        driver=device, initial_pool_size="4MiB", maximum_pool_size="256MiB", prefetch="never"
    )
    clock = FakeClock()
    slot = Slot(0, device, capacity_bytes=DEVICE_BYTES)
    sampler = Sampler([slot], 10**8, 1000, clock)
    sampler.set_levels(0, levels_of(mr))
    facts = RecordedDevice(0, "simulated", "", DEVICE_BYTES, DEVICE_BYTES, simulated=True)
    advisor = Advisor(sampler, [facts], Delivery(None), prefetch=lambda device_id: "never")
    sampler.start()
    addresses = [mr.allocate(PIECE_BYTES) for _ in range(pieces)]
    for _ in range(cycles):
        for address in addresses:
            device.touch(address, PIECE_BYTES, write=True)
        clock.advance(0.05)  # not a tick of its own: the samples are those taken here
        assert sampler.sample_now()
    sampler.stop()
    advisor.stop()
    for address in addresses:
        mr.deallocate(address, PIECE_BYTES)
    assert advisor.failures == ()
    return [finding.kind for finding in advisor.findings]


def test_thrashing_is_told_within_three_samples() -> None:
    assert kinds_after_cycles(pieces=24, cycles=3) == ["footprint", "amplification"]


@pytest.mark.parametrize("cycles", [1, 30])
def test_cycles_over_what_fits_are_not_told(cycles: int) -> None:
    assert kinds_after_cycles(pieces=14, cycles=cycles) == []

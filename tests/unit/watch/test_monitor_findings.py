# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the monitor finds on simulated devices, and to whom it tells it."""

from __future__ import annotations

import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.mr import ManagedMemoryResource
from rmm_uvm.recording.finding import Finding
from rmm_uvm.residency import Budget
from rmm_uvm.watch.judging.thresholds import Thresholds

from .monitors import MIB, Make, advance


def test_findings_are_recorded_and_delivered(make: Make, device: SimulatedDevice) -> None:
    told: list[Finding] = []
    mr = ManagedMemoryResource(device)
    pointers = [mr.allocate(32 * MIB) for _ in range(3)]
    with make(on_finding=told.append) as m:
        for _ in range(6):
            for pointer in pointers:
                device.touch(pointer, 32 * MIB, write=True)
            advance(m)
        kinds = {finding.kind for finding in m.findings}

    assert "eviction" in kinds or "amplification" in kinds
    assert [finding.kind for finding in told] == [finding.kind for finding in m.findings]
    assert m.recording().findings == m.findings
    for pointer in pointers:
        mr.deallocate(pointer, 32 * MIB)


@pytest.mark.parametrize(("seconds", "found"), [(0.001, False), (0.1, True)])
def test_samples_within_one_burst_are_no_sustained_eviction(
    make: Make, device: SimulatedDevice, seconds: float, *, found: bool
) -> None:
    mr = ManagedMemoryResource(device)
    pointers = [mr.allocate(32 * MIB) for _ in range(3)]
    with make() as m:
        for pointer in pointers:
            device.touch(pointer, 32 * MIB, write=True)
        advance(m)
        for pointer in pointers * 2:  # less than amplification, however often
            device.touch(pointer, 2 * MIB, write=True)
            advance(m, seconds)
        kinds = {finding.kind for finding in m.findings}
    assert ("eviction" in kinds) == found
    for pointer in pointers:
        mr.deallocate(pointer, 32 * MIB)


def test_run_that_fits_has_no_finding(make: Make, device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(32 * MIB)
    with make() as m:
        for _ in range(10):
            device.touch(pointer, 32 * MIB, write=True)
            device.cpu_touch(pointer, 32 * MIB)
            advance(m)
        assert m.findings == ()
    mr.deallocate(pointer, 32 * MIB)


@pytest.mark.parametrize(("pieces", "told"), [(8, True), (3, False)])
def test_program_that_waits_for_its_budget_is_told_and_one_that_fits_is_not(
    make: Make, device: SimulatedDevice, pieces: int, *, told: bool
) -> None:
    # A model's moves take no time of ours: any waiting is enough here.
    thresholds = Thresholds(waiting_fraction=1e-9, waiting_rearm_fraction=1e-9)
    budget = Budget(16 * MIB, "lru", background=False)
    mr = rmm_uvm.managed_pool(driver=device, device_budget=budget)
    rmm.mr.set_per_device_resource(0, mr)
    data = [mr.allocate(4 * MIB) for _ in range(pieces)]
    with make(thresholds=thresholds) as m:
        for _ in range(20):
            for address in data:
                mr.managed_mr.residency.touch(address, 4 * MIB, address)
                device.touch(address, 4 * MIB, write=True)
            advance(m, 0.5)
        found = [finding for finding in m.findings if finding.kind == "waiting"]
    assert len(found) == told
    if found:
        assert "because its data do not fit the budget of 16.00 MiB" in str(found[0])
    for address in data:
        mr.deallocate(address, 4 * MIB)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Measuring stages: footprints, and what moved."""

from __future__ import annotations

import pytest
import rmm.mr

from rmm_uvm_mortgage.shadow.enactor import DeviceColumn, Enactor
from rmm_uvm_mortgage.shadow.plan import EventPlan
from rmm_uvm_mortgage.shadow.sizes import ColumnShape
from rmm_uvm_mortgage.shadow.stages import (
    Footprint,
    FootprintSource,
    ResourceFootprint,
    StageMeter,
)


class FakeStatistics:
    """A device whose counters are set by hand."""

    def __init__(self) -> None:
        self.counters = {
            "host_to_device_bytes": 5,
            "device_to_host_bytes": 7,
            "modelled_ns": 1_000_000_000,
        }

    def statistics(self) -> dict[str, int]:
        return dict(self.counters)


def statistics_resource() -> rmm.mr.StatisticsResourceAdaptor:
    addresses = iter(range(1 << 40, 1 << 50, 1 << 30))
    fake = rmm.mr.CallbackMemoryResource(
        lambda nbytes, stream: next(addresses), lambda address, nbytes, stream: None
    )
    return rmm.mr.StatisticsResourceAdaptor(fake)


def allocate(enactor: Enactor, kept_rows: int, work_bytes: int) -> list[DeviceColumn]:
    plan = EventPlan()
    with plan.work("work", work_bytes):
        column = plan.allocate_column("column", ColumnShape("int64", kept_rows))
    return enactor.run(plan, {}, [column])


@pytest.fixture(params=["counted by the enactor", "counted by RMM"])
def sources(request: pytest.FixtureRequest) -> tuple[Enactor, FootprintSource]:
    resource = statistics_resource()
    enactor = Enactor(resource)
    counted_by_rmm = request.param == "counted by RMM"
    return enactor, ResourceFootprint(resource) if counted_by_rmm else enactor.footprint


def test_footprint_peak_starts_anew_with_a_stage(
    sources: tuple[Enactor, FootprintSource],
) -> None:
    enactor, footprint = sources
    kept = allocate(enactor, kept_rows=100, work_bytes=5000)
    assert (footprint.now_bytes, footprint.peak_bytes) == (800, 5800)
    footprint.begin_stage()
    assert (footprint.now_bytes, footprint.peak_bytes) == (800, 800)
    more = allocate(enactor, kept_rows=10, work_bytes=40)
    assert (footprint.now_bytes, footprint.peak_bytes) == (880, 920)
    del kept
    footprint.begin_stage()
    assert (footprint.now_bytes, footprint.peak_bytes) == (80, 80)
    del more
    assert footprint.now_bytes == 0


def test_meter_reports_footprint_and_movement_of_a_stage(
    sources: tuple[Enactor, FootprintSource],
) -> None:
    enactor, footprint = sources
    device = FakeStatistics()
    meter = StageMeter(footprint, device)
    before = allocate(enactor, kept_rows=10, work_bytes=0)
    meter.begin("step")
    kept = allocate(enactor, kept_rows=100, work_bytes=300)
    device.counters["device_to_host_bytes"] += 11
    device.counters["modelled_ns"] += 500_000_000
    meter.end("step")
    (report,) = meter.reports
    assert report.name == "step"
    assert (report.begin_bytes, report.peak_bytes, report.end_bytes) == (80, 1180, 880)
    assert (report.host_to_device_bytes, report.device_to_host_bytes) == (0, 11)
    assert report.modelled_seconds == 0.5
    assert len(before) == len(kept) == 1


def test_meter_without_device_reports_no_movement() -> None:
    meter = StageMeter(Footprint())
    meter.begin("step")
    meter.end("step")
    assert meter.reports[0].host_to_device_bytes == 0
    assert meter.reports[0].modelled_seconds == 0.0

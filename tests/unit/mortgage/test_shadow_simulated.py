# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The shadow engine on RMM's real pool over a simulated device."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import rmm.mr

import rmm_uvm
from rmm_uvm_mortgage.dictionary import load_domains
from rmm_uvm_mortgage.etl import run_etl
from rmm_uvm_mortgage.files import Part, find_files, make_parts
from rmm_uvm_mortgage.generate import GeneratorConfig, generate
from rmm_uvm_mortgage.shadow.engine import ShadowEngine
from rmm_uvm_mortgage.shadow.stages import StageMeter, StageReport

DEVICE_BYTES = 8 << 20
MAXIMUM_BYTES = 256 << 20


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data set whose ETL needs about 17 MB unsplit, and a quarter of that in 4 parts."""
    directory = tmp_path_factory.mktemp("mortgage")
    generate(directory, GeneratorConfig(loans_per_quarter=400), workers=1)
    return directory


def parts_of(directory: Path, count: int) -> list[Part]:
    files = find_files(directory)
    return make_parts(files, load_domains(files), parts=count)


def run(engine: ShadowEngine, meter: StageMeter, part: Part) -> list[StageReport]:
    engine.observers.append(meter)
    run_etl(engine, part)
    return meter.reports


def test_managed_pool_completes_past_the_capacity_and_says_what_moved(directory: Path) -> None:
    device = rmm_uvm.simulated_device(DEVICE_BYTES)
    upstream = rmm_uvm.mr.ManagedMemoryResource(device)
    pool = rmm.mr.PoolMemoryResource(upstream, DEVICE_BYTES, MAXIMUM_BYTES)
    engine = ShadowEngine(rmm_uvm.mr.UvmResourceAdaptor(pool), device)
    reports = run(engine, StageMeter(engine.footprint, device), parts_of(directory, 1)[0])
    assert max(report.peak_bytes for report in reports) > 1.5 * DEVICE_BYTES
    assert sum(report.device_to_host_bytes for report in reports) > 0
    assert sum(report.modelled_seconds for report in reports) > 0
    assert engine.footprint.now_bytes == 0


def test_fixed_pool_runs_out_unsplit_and_holds_a_quarter(directory: Path) -> None:
    device = rmm_uvm.simulated_device(DEVICE_BYTES)
    upstream = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    pool = rmm.mr.PoolMemoryResource(upstream, DEVICE_BYTES, DEVICE_BYTES)
    engine = ShadowEngine(pool)
    meter = StageMeter(engine.footprint)
    with pytest.raises(MemoryError):
        run(engine, meter, parts_of(directory, 1)[0])
    assert meter.reports[-1].name == "final_performance_delinquency"
    assert engine.footprint.now_bytes == 0
    for part in parts_of(directory, 4):
        run_etl(engine, part)
    assert engine.footprint.now_bytes == 0

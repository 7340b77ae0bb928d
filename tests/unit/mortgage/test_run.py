# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One run on one memory of a simulated device, from data to report."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from rmm_uvm.errors import ConfigurationError
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.generate import GeneratorConfig, generate
from rmm_uvm_mortgage.pipeline import PipelineConfig, run_pipeline
from rmm_uvm_mortgage.run import RunConfig, default_device_bytes, default_device_reason, run
from rmm_uvm_mortgage.run_report import RunReport

DEVICE_BYTES = 8 << 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data set whose ETL needs about 17 MB unsplit, and a quarter of that in 4 parts."""
    directory = tmp_path_factory.mktemp("mortgage")
    generate(directory, GeneratorConfig(loans_per_quarter=400), workers=1)
    return directory


def etl(data: Path, memory: str, parts: int = 1, device_bytes: int = DEVICE_BYTES) -> RunReport:
    return run(RunConfig(PipelineConfig(data, parts=parts, train_parts=0), memory, device_bytes))


def test_managed_unsplit_completes_past_the_device_with_the_features_of_pandas(data: Path) -> None:
    report = etl(data, "managed")
    plain = run_pipeline(PipelineConfig(data, train_parts=0), make_engine("pandas"))
    assert report.pipeline.out_of_memory is None
    assert report.oversubscription_factor > 1.5
    assert min(report.migrated_bytes) > 0
    assert report.modelled_seconds > 0
    assert report.pipeline.feature_digest == plain.feature_digest


def test_cuda_pool_unsplit_ends_at_the_join_that_does_not_fit(data: Path) -> None:
    report = etl(data, "cuda-pool")
    assert report.pipeline.out_of_memory is not None
    assert report.pipeline.out_of_memory.stage == "final_performance_delinquency"
    assert report.peak_bytes <= DEVICE_BYTES
    assert report.migrated_bytes == (0, 0)


def test_cuda_pool_in_four_parts_completes_and_hands_over(data: Path) -> None:
    report = etl(data, "cuda-pool", parts=4)
    assert report.pipeline.out_of_memory is None
    assert report.stages[-1].name == "teardown_pool"
    assert {stage.runs for stage in report.stages[:-1]} == {4}


def test_managed_nopool_calls_the_driver_for_every_allocation(data: Path) -> None:
    pooled, unpooled = etl(data, "managed"), etl(data, "managed-nopool")
    calls = [sum(s.upstream_allocations for s in r.stages) for r in (pooled, unpooled)]
    assert calls[1] > 100 * max(calls[0], 1)


def test_run_with_training_counts_xgboost_beside_the_footprint(data: Path) -> None:
    config = RunConfig(PipelineConfig(data, rounds=1), "managed", 64 << 20, find_training_set=True)
    report = run(config)
    stages = {stage.name: stage for stage in report.stages}
    assert stages["train"].xgboost_peak_bytes > 32 << 20
    assert stages["train"].peak_bytes == 0
    assert stages["prep"].upstream_allocations == 0
    assert report.largest_training_rows is not None
    assert report.largest_training_rows > report.pipeline.training_rows


def test_cuda_pool_in_prep_calls_cuda_malloc_since_its_pool_is_gone(data: Path) -> None:
    report = run(RunConfig(PipelineConfig(data, rounds=1), "cuda-pool", 64 << 20))
    prep = next(stage for stage in report.stages if stage.name == "prep")
    assert prep.upstream_allocations == 2 * 46  # every column, and its concatenation


def test_timeline_shows_every_peak_and_stays_within_the_device(data: Path) -> None:
    report = etl(data, "managed")
    rows = report.timeline["samples"]
    assert max(row[1] for row in rows) == pytest.approx(report.peak_bytes, rel=0.02)
    assert max(row[2] + row[3] for row in rows) <= DEVICE_BYTES
    assert [span[0] for span in report.timeline["stages"]] == [s.name for s in report.stages]


@pytest.mark.parametrize("memory", ["managed", "cuda-pool"])
def test_report_to_json_and_back_is_the_same(data: Path, memory: str) -> None:
    report = etl(data, memory)
    plain = json.loads(json.dumps(report.to_json()))
    assert RunReport.from_json(plain) == report
    factors = [stage["oversubscription_factor"] for stage in plain["stages"]]
    assert max(factors) == plain["oversubscription_factor"]


def test_pool_larger_than_the_device_is_refused(data: Path) -> None:
    config = RunConfig(
        PipelineConfig(data, train_parts=0), "cuda-pool", DEVICE_BYTES, 2 * DEVICE_BYTES
    )
    with pytest.raises(ConfigurationError, match="cannot be larger than the device"):
        run(config)


def test_default_device_is_five_times_the_largest_file_and_never_tiny(
    data: Path, tmp_path: Path
) -> None:
    assert default_device_bytes(data) == 128 << 20
    assert default_device_reason(128 << 20).startswith("the least for any data")
    for folder in ("acq", "perf"):
        (tmp_path / folder).mkdir()
    for name in ("names.csv", "acq/Acquisition_2000Q1.txt"):
        (tmp_path / name).touch()
    with (tmp_path / "perf/Performance_2000Q1.txt").open("wb") as file:
        file.truncate(40 << 20)
    assert default_device_bytes(tmp_path) == 200 << 20
    assert default_device_reason(200 << 20).startswith("five times the largest")


def test_report_says_nothing_of_a_ratio_of_modelled_to_wall_time() -> None:
    names = {field.name for field in dataclasses.fields(RunReport)}
    assert not {name for name in names if "speedup" in name or "slowdown" in name}

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The shadow engine held against what cuDF allocated on an H200, per row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from rmm_uvm_mortgage.generate import GeneratorConfig, generate
from rmm_uvm_mortgage.pipeline import PipelineConfig
from rmm_uvm_mortgage.run import RunConfig, run

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
LARGEST_DEVIATION = 0.15
ROOM_BYTES = 1 << 30


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data of the GPU run, a thirtieth of it."""
    directory = tmp_path_factory.mktemp("mortgage")
    generate(directory, GeneratorConfig(performance_rows=100_000), workers=2)
    return directory


@pytest.mark.parametrize("parts", [1, 4])
def test_peak_of_every_stage_is_within_15_percent_of_the_gpu(data: Path, parts: int) -> None:
    # GIVEN the peaks on the GPU, the largest of all parts
    measured = json.loads((RESULTS / f"mortgage_allocations_parts{parts}.json").read_text())
    gpu_bytes: dict[str, int] = {}
    for stage in measured["stages"]:
        name = stage["stage"]
        gpu_bytes[name] = max(gpu_bytes.get(name, 0), stage["peak_bytes"])
    # WHEN the same pipeline is shadowed on less data
    config = RunConfig(PipelineConfig(data, parts=parts, rounds=1), "cuda-pool", ROOM_BYTES)
    report = run(config)
    # THEN each stage needs as much for each row
    scale = measured["result"]["feature_rows"] / report.pipeline.feature_rows
    deviations = {
        stage.name: stage.peak_bytes * scale / gpu_bytes[stage.name] - 1
        for stage in report.stages
        if stage.name not in ("teardown_pool", "train")
    }
    assert len(deviations) == 12
    too_far = {name: round(d, 3) for name, d in deviations.items() if abs(d) > LARGEST_DEVIATION}
    assert not too_far

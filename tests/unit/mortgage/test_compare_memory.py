# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Several memories, a process each."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("xgboost")

from rmm_uvm.errors import ConfigurationError
from rmm_uvm_mortgage.compare_memory import (
    ComparisonRequest,
    PlannedRun,
    RunFailedError,
    compare_memories,
    planned_runs,
)
from rmm_uvm_mortgage.pipeline import PipelineProgress
from rmm_uvm_mortgage.reference import Reference, make_reference


@pytest.fixture(scope="module")
def reference(mortgage_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return make_reference(mortgage_data, tmp_path_factory.mktemp("pandas") / "features.arrow")


def request_of(data: Path, device_bytes: int = 64 << 20) -> ComparisonRequest:
    return ComparisonRequest(data, "pandas", device_bytes, None, rounds=1, train_parts="max")


def test_planned_runs_split_only_what_cannot_exceed_the_device() -> None:
    planned = planned_runs()
    assert [(run.memory, run.split) for run in planned[:3]] == [
        ("cuda-pool", 1),
        ("cuda-pool", 4),
        ("managed", 1),
    ]
    assert all(run.split == 1 for run in planned[2:])
    assert planned[1].title == "cuda-pool, in 4 parts"


def test_planned_runs_as_asked_are_those() -> None:
    assert planned_runs(["cuda"], 2) == [PlannedRun("cuda", 2)]
    with pytest.raises(ConfigurationError):
        planned_runs(["tape"])


def test_runs_compared_under_a_budget_have_it_where_one_is_kept(tmp_path: Path) -> None:
    asked = ComparisonRequest(
        tmp_path, "pandas", None, None, 1, "max", budget_bytes=99, eviction="lru"
    )
    assert asked.arguments("managed")[-4:] == ["--device-budget", "99", "--eviction", "lru"]
    assert asked.arguments("managed-nopool")[-2:] == ["--eviction", "lru"]
    only_policy = dataclasses.replace(asked, budget_bytes=None)
    assert only_policy.arguments("managed")[-2:] == ["--eviction", "lru"]
    assert "--eviction" not in only_policy.arguments("rmm-managed")
    assert "--device-budget" not in asked.arguments("cuda-pool")
    assert "--device-budget" not in asked.arguments("rmm-managed")


def test_compared_runs_have_the_features_of_pandas(
    mortgage_data: Path, reference: Reference
) -> None:
    seen: list[tuple[int, PipelineProgress]] = []
    runs = compare_memories(
        [PlannedRun("cuda-pool", 2), PlannedRun("managed", 1)],
        request_of(mortgage_data),
        reference,
        progress=lambda number, progress: seen.append((number, progress)),
    )
    assert [run.report.memory for run in runs] == ["cuda-pool", "managed"]
    assert [run.report.features_against_pandas for run in runs] == ["identical", "identical"]
    assert [len(run.report.pipeline.parts) for run in runs] == [4, 2]
    assert all(run.report.largest_training_rows for run in runs)
    assert {number for number, _ in seen} == {0, 1}
    assert seen[-1][1].stage == "train"


def test_run_that_cannot_be_done_gives_its_own_reason(
    mortgage_data: Path, reference: Reference
) -> None:
    # 3 MiB: a simulated device has a multiple of 2 MiB.
    with pytest.raises(RunFailedError, match=r"the run of managed ended with status 1: .*2 MiB"):
        compare_memories([PlannedRun("managed", 1)], request_of(mortgage_data, 3 << 20), reference)


def test_reference_tells_other_features_from_its_own(
    mortgage_data: Path, reference: Reference, tmp_path: Path
) -> None:
    import pyarrow as pa

    with pa.memory_map(str(reference.path)) as file:
        features = pa.ipc.open_file(file).read_all()
    upb = features.column("current_actual_upb")
    place = features.column_names.index("current_actual_upb")
    path = tmp_path / "other.arrow"

    def describe(factor: float) -> str | None:
        values = pa.array(upb.to_numpy() * factor, upb.type)
        other = features.set_column(place, "current_actual_upb", values)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, other.schema) as writer:
            writer.write_table(other)
        return reference.describe("0" * 16, path)

    assert reference.describe(reference.digest, path) == "identical"
    assert reference.describe(None, path) is None
    assert describe(1.0) == "equal to 1e-6"
    assert (describe(1.01) or "").startswith("different: current_actual_upb")

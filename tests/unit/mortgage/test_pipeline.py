# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The pipeline end to end on the pandas engine: results, progress, exhausted memory."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError
from rmm_uvm_mortgage.compare import compare_features
from rmm_uvm_mortgage.engines.pandas import PandasEngine
from rmm_uvm_mortgage.etl import STAGES
from rmm_uvm_mortgage.pipeline import PipelineConfig, PipelineProgress, run_pipeline
from rmm_uvm_mortgage.prep import hold_out, prepare
from rmm_uvm_mortgage.steps.final import LABEL
from rmm_uvm_mortgage.train import PARAMETERS


def config(data: Path, **values: Any) -> PipelineConfig:
    return PipelineConfig(data, **{"rounds": 5, **values})


class SmallEngine(PandasEngine):
    """Runs out of memory when a frame or a matrix gets too many rows."""

    def __init__(self, rows: int, message: str = "std::bad_alloc: out_of_memory\nmore") -> None:
        super().__init__()
        self.rows = rows
        self.message = message

    def left_join(self, left: Any, right: Any, on: Sequence[str]) -> Any:
        if len(left) > self.rows:
            raise MemoryError(self.message)
        return super().left_join(left, right, on)

    def training_matrix(self, features: Any, label: Any, missing: float) -> Any:
        if len(features) > self.rows:
            import xgboost as xgb

            raise xgb.core.XGBoostError(self.message)
        return super().training_matrix(features, label, missing)


# -- complete runs ---------------------------------------------------------------------------------


def test_run_pipeline_trains_a_model_that_predicts_held_out_loans(mortgage_data: Path) -> None:
    result = run_pipeline(config(mortgage_data, rounds=20), PandasEngine())

    assert result.out_of_memory is None
    assert result.parts == ("2000Q1", "2000Q2")
    assert [stage.name for stage in result.stages] == [*STAGES, "prep", "train"]
    assert {stage.runs for stage in result.stages[:-2]} == {2}
    assert result.training_parts == 2
    assert result.quality is not None
    assert result.training_rows + result.quality.rows == result.feature_rows
    assert result.quality.auc is not None
    assert result.quality.auc > 0.6
    assert 0 < (result.label_fraction or 0) < 0.5
    assert result.etl_seconds == pytest.approx(
        sum(stage.wall_seconds for stage in result.stages[:-2])
    )


def test_run_pipeline_twice_gives_equal_features_and_quality(mortgage_data: Path) -> None:
    whole, divided = (
        run_pipeline(config(mortgage_data, parts=parts), PandasEngine()) for parts in (1, 4)
    )

    assert whole.feature_digest == divided.feature_digest
    assert len(divided.parts) == 8
    assert whole.quality is not None
    assert divided.quality is not None
    assert whole.quality.auc == pytest.approx(divided.quality.auc, abs=0.02)


def test_pipeline_result_is_plain_json(mortgage_data: Path) -> None:
    result = run_pipeline(config(mortgage_data, train_parts=1), PandasEngine())

    restored = json.loads(json.dumps(result.to_json()))

    assert restored["stages"][0]["name"] == STAGES[0]
    assert restored["training_parts"] == 1
    assert restored["quality"]["rows"] == dataclasses.asdict(result)["quality"]["rows"]


def test_run_pipeline_reports_progress_of_every_stage(mortgage_data: Path) -> None:
    seen: list[PipelineProgress] = []

    run_pipeline(config(mortgage_data), PandasEngine(), progress=seen.append)

    assert [p.stages_begun for p in seen] == list(range(1, 2 * len(STAGES) + 3))
    assert {p.stages_total for p in seen} == {2 * len(STAGES) + 2}
    assert [p.part for p in seen[len(STAGES) - 1 : len(STAGES) + 1]] == ["2000Q1", "2000Q2"]
    assert seen[-1].stage == "train"


def test_run_pipeline_writes_the_features_for_comparison(
    mortgage_data: Path, tmp_path: Path
) -> None:
    tables = []
    for parts in (1, 3):
        path = tmp_path / f"{parts}.arrow"
        run_pipeline(
            config(mortgage_data, parts=parts, train_parts=0, features_path=path), PandasEngine()
        )
        tables.append(pa.ipc.open_file(path).read_all())

    assert compare_features(*tables) is None


def test_run_pipeline_calls_teardown_between_etl_and_prep(mortgage_data: Path) -> None:
    engine = PandasEngine()
    order: list[str] = []

    class Recorder:
        def begin(self, name: str) -> None:
            order.append(name)

        def end(self, name: str) -> None:
            pass

    engine.observers.append(Recorder())

    result = run_pipeline(
        config(mortgage_data, parts=1), engine, teardown_pool=lambda: order.append("torn down")
    )

    assert order[-5:] == ["last_mile_cleaning", "teardown_pool", "torn down", "prep", "train"]
    seconds = {stage.name: stage.wall_seconds for stage in result.stages}
    assert result.prep_seconds == pytest.approx(seconds["teardown_pool"] + seconds["prep"])


def test_run_pipeline_without_training_needs_no_xgboost(
    mortgage_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)

    result = run_pipeline(config(mortgage_data, train_parts=0), PandasEngine())

    assert result.quality is None
    assert result.feature_rows > 0
    with pytest.raises(AvailabilityError, match="training needs xgboost: pip install"):
        run_pipeline(config(mortgage_data), PandasEngine())


# -- exhausted memory ------------------------------------------------------------------------------


def test_run_pipeline_out_of_memory_names_stage_and_part(mortgage_data: Path) -> None:
    engine = SmallEngine(rows=2000)

    result = run_pipeline(config(mortgage_data), engine)

    assert result.out_of_memory is not None
    assert result.out_of_memory.stage == "create_joined_df"
    assert result.out_of_memory.part == "2000Q1"
    assert result.out_of_memory.message == "std::bad_alloc: out_of_memory"
    assert result.feature_digest is None
    assert engine.observers == []


def test_run_pipeline_in_more_parts_fits_where_the_whole_does_not(mortgage_data: Path) -> None:
    result = run_pipeline(config(mortgage_data, parts=6, train_parts=0), SmallEngine(rows=2000))

    assert result.out_of_memory is None


def test_run_pipeline_out_of_memory_in_prep_keeps_the_features(mortgage_data: Path) -> None:
    result = run_pipeline(config(mortgage_data, parts=6), SmallEngine(rows=2000))

    assert result.out_of_memory is not None
    assert (result.out_of_memory.stage, result.out_of_memory.part) == ("prep", None)
    assert result.feature_digest is not None


def test_run_pipeline_train_parts_max_finds_the_largest_set(mortgage_data: Path) -> None:
    sizes = run_pipeline(config(mortgage_data, parts=6, train_parts=5), PandasEngine())

    result = run_pipeline(
        config(mortgage_data, parts=6, train_parts="max"), SmallEngine(sizes.training_rows)
    )

    assert result.out_of_memory is None
    assert result.training_parts == 5
    assert result.training_rows == sizes.training_rows


def test_run_pipeline_train_parts_max_without_room_is_out_of_memory(mortgage_data: Path) -> None:
    engine = SmallEngine(rows=10**6)
    engine.training_matrix = _always_full  # type: ignore[method-assign, assignment]

    result = run_pipeline(config(mortgage_data, train_parts="max"), engine)

    assert result.out_of_memory is not None
    assert "not even one part" in result.out_of_memory.message


def _always_full(*args: Any, **kwargs: Any) -> Any:
    raise MemoryError("full")


def test_run_pipeline_lets_other_xgboost_errors_through(mortgage_data: Path) -> None:
    import xgboost as xgb

    with pytest.raises(xgb.core.XGBoostError, match="something else"):
        run_pipeline(
            config(mortgage_data, parts=6), SmallEngine(rows=2000, message="something else")
        )


# -- bad configuration -----------------------------------------------------------------------------


@pytest.mark.parametrize("values", [{"parts": 0}, {"train_parts": -1}, {"rounds": 0}])
def test_pipeline_config_out_of_range_is_refused(values: Mapping[str, int]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(values))):
        PipelineConfig(Path(), **values)  # type: ignore[arg-type]


def test_run_pipeline_with_more_train_parts_than_parts_is_refused(mortgage_data: Path) -> None:
    with pytest.raises(ConfigurationError, match="only 2 parts"):
        run_pipeline(config(mortgage_data, train_parts=3), PandasEngine())


def test_run_pipeline_without_data_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="generate one"):
        run_pipeline(config(tmp_path / "none"), PandasEngine())


# -- PREP ------------------------------------------------------------------------------------------


def features(zip_codes: list[int]) -> pa.Table:
    n = len(zip_codes)
    return pa.table(
        {
            "zip": pa.array(zip_codes, pa.float32()),
            "dti": pa.array([-1.0] * n, pa.float32()),
            LABEL: pa.array([i % 2 for i in range(n)], pa.int32()),
            "age": pa.array(range(n), pa.float32()),
        }
    )


def test_hold_out_divides_by_zip_code() -> None:
    training, held_out = hold_out(features([100, 101, 250, 259, -1]))

    assert held_out.column("zip").to_pylist() == [100, 250]
    assert training.column("zip").to_pylist() == [101, 259, -1]


def test_prepare_orders_features_by_name_and_takes_minus_one_as_missing() -> None:
    matrix = prepare(PandasEngine(), [features([1, 2, 3]), features([4, 5])])

    assert matrix.feature_names == ["age", "dti", "zip"]
    assert (matrix.num_row(), matrix.num_col()) == (5, 3)
    assert matrix.num_nonmissing() == 10
    assert matrix.get_label().tolist() == [0, 1, 0, 0, 1]


def test_parameters_are_those_of_the_original() -> None:
    expected = {
        "max_depth": 8,
        "max_leaves": 256,
        "alpha": 0.9,
        "eta": 0.1,
        "gamma": 0.1,
        "subsample": 1,
        "reg_lambda": 1,
        "scale_pos_weight": 2,
        "min_child_weight": 30,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "objective": "binary:logistic",
    }

    assert expected.items() <= PARAMETERS.items()

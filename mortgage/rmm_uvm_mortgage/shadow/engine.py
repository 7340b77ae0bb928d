# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An engine that computes with pandas and uses device memory as cuDF would.

The results are real: they are the pandas engine's. So are the memory resource and every
allocation from it: each column, null mask and work space that cuDF's operator would need is
allocated, touched and freed in cuDF's order, so memory runs out at the step where it would on a
GPU. Only the device behind the resource may be simulated. Nothing is said about computing speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rmm_uvm_mortgage.engines.base import (
    Aggregation,
    Arithmetic,
    Comparison,
    DType,
    Engine,
    EngineColumn,
    StageObserver,
)
from rmm_uvm_mortgage.engines.pandas import PandasEngine
from rmm_uvm_mortgage.files import TextRange
from rmm_uvm_mortgage.schema import TableSchema
from rmm_uvm_mortgage.shadow import frame_operators, operators, reader
from rmm_uvm_mortgage.shadow.enactor import Device, DeviceColumn, Enactor
from rmm_uvm_mortgage.shadow.frame import (
    RowLabels,
    ShadowColumn,
    ShadowFrame,
    device_type,
    key_runs,
    null_count,
    text_bytes,
)
from rmm_uvm_mortgage.shadow.plan import EventPlan, PlannedColumn
from rmm_uvm_mortgage.shadow.sizes import ColumnShape
from rmm_uvm_mortgage.shadow.stages import Footprint

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import rmm.mr
    import xgboost as xgb


class ShadowEngine(Engine[ShadowFrame, ShadowColumn]):
    """Runs the pipeline with pandas, and with cuDF's use of device memory.

    Parameters
    ----------
    resource : rmm.mr.DeviceMemoryResource
        Every device buffer comes from here.
    device : Device or None
        Simulated device to tell about kernels' accesses, if `resource` gives its managed memory;
        None for memory that cannot migrate.
    observers : sequence of StageObserver
        Told about every stage.

    Raises
    ------
    AvailabilityError
        pandas or pyarrow is not installed.

    Notes
    -----
    Every operator may raise MemoryError. It then leaves its inputs as they were and nothing
    allocated; the pandas result is dropped. Training is not shadowed: XGBoost does not allocate
    from RMM's resource.
    """

    name = "shadow"
    training_device: Literal["cpu", "cuda"] = "cpu"

    def __init__(
        self,
        resource: rmm.mr.DeviceMemoryResource,
        device: Device | None = None,
        observers: Sequence[StageObserver] = (),
    ) -> None:
        super().__init__(observers)
        self._host = PandasEngine()
        self._enactor = Enactor(resource, device)

    @property
    def footprint(self) -> Footprint:
        """Live bytes of device columns and work space, and their peak."""
        return self._enactor.footprint

    # -- frames in and out ---------------------------------------------------------------------

    def read_text(
        self, source: TextRange, schema: TableSchema, domains: Mapping[str, Sequence[str]]
    ) -> ShadowFrame:
        """Read a range of lines; category columns are read as strings, then encoded."""
        values = self._host.read_text(source, schema, domains)
        shapes = []
        for spec in schema.columns:
            column = values[spec.name]
            nulls = null_count(column)
            if spec.domain is None:
                shapes.append(ColumnShape(device_type(column), len(column), nulls))
            else:
                text = text_bytes(column, domains[spec.domain])
                shapes.append(ColumnShape("string", len(column), nulls, nulls > 0, text))
        plan = EventPlan()
        planned = reader.read_csv(plan, source.size_bytes, shapes)
        columns = dict(zip(values.columns, self._enactor.run(plan, {}, planned), strict=True))
        for name, domain in schema.category_columns.items():
            plan = EventPlan()
            strings = _planned("strings", columns[name])
            codes = frame_operators.encode_categories(plan, strings, len(domains[domain]))
            columns[name] = self._run_one(plan, {"strings": columns[name]}, codes)
        return ShadowFrame(values, columns)

    def to_host(self, frame: ShadowFrame) -> pa.Table:
        """Copy a frame to an Arrow table."""
        plan = EventPlan()
        plan.kernel(_planned_all(frame.columns))
        self._enactor.run(plan, frame.columns, [])
        return self._host.to_host(frame.values)

    def from_host(self, table: pa.Table) -> ShadowFrame:
        """Copy an Arrow table to a frame."""
        values = self._host.from_host(table)
        plan = EventPlan()
        planned = []
        for name in values.columns:
            nulls = null_count(values[name])
            shape = ColumnShape(device_type(values[name]), len(values), nulls, nulls > 0)
            planned.append(plan.allocate_column(str(name), shape))
            plan.kernel([], planned[-1:])
        made = self._enactor.run(plan, {}, planned)
        return ShadowFrame(values, dict(zip(values.columns, made, strict=True)))

    def height(self, frame: ShadowFrame) -> int:
        """Return the number of rows."""
        return self._host.height(frame.values)

    def column_names(self, frame: ShadowFrame) -> list[str]:
        """Return the column names in order."""
        return self._host.column_names(frame.values)

    # -- columns of a frame --------------------------------------------------------------------

    def assign_constant(self, frame: ShadowFrame, name: str, value: int, dtype: DType) -> None:
        """Add a constant column; the frame is changed."""
        plan = EventPlan()
        constant = operators.fill_column(plan, dtype, self.height(frame))
        frame.columns[name] = self._run_one(plan, {}, constant)
        self._host.assign_constant(frame.values, name, value, dtype)

    def drop(self, frame: ShadowFrame, names: Sequence[str]) -> None:
        """Remove columns; the frame is changed."""
        self._host.drop(frame.values, names)
        for name in names:
            del frame.columns[name]

    def rename(self, frame: ShadowFrame, names: Mapping[str, str]) -> ShadowFrame:
        """Return a frame that shares all columns, some under new names."""
        columns = {names.get(name, name): column for name, column in frame.columns.items()}
        return ShadowFrame(self._host.rename(frame.values, names), columns, frame.labels)

    def select(self, frame: ShadowFrame, names: Sequence[str]) -> ShadowFrame:
        """Return a frame that shares the named columns."""
        columns = {name: frame.columns[name] for name in names}
        return ShadowFrame(self._host.select(frame.values, names), columns, frame.labels)

    # -- tables --------------------------------------------------------------------------------

    def filter(self, frame: ShadowFrame, mask: EngineColumn[ShadowColumn]) -> ShadowFrame:
        """Return the rows where `mask` is true."""
        values = self._host.filter(frame.values, EngineColumn(self._host, mask.data.values))
        plan = EventPlan()
        inputs = {**frame.columns, "mask of filter": mask.data.device}
        inputs["labels of rows"] = self._row_labels(frame)
        kept = frame_operators.filter_rows(
            plan,
            _planned_all(frame.columns),
            _planned("mask of filter", inputs["mask of filter"]),
            _planned("labels of rows", inputs["labels of rows"]),
            len(values),
            [null_count(values[name]) for name in values.columns],
        )
        return self._frame(values, self._enactor.run(plan, inputs, kept))

    def groupby(
        self, frame: ShadowFrame, keys: Sequence[str], aggregations: Mapping[str, Aggregation]
    ) -> ShadowFrame:
        """Return one row per distinct key."""
        values = self._host.groupby(frame.values, keys, aggregations)
        plan = EventPlan()
        key_columns, aggregates = operators.groupby(
            plan,
            [_planned(name, frame.columns[name]) for name in keys],
            [_planned(name, frame.columns[name]) for name in aggregations],
            len(values),
            key_runs(frame.values[list(keys)]),
            [null_count(values[name]) for name in aggregations],
        )
        made = self._enactor.run(plan, frame.columns, [*key_columns, *aggregates])
        return self._frame(values[[*keys, *aggregations]], made)

    def left_join(self, left: ShadowFrame, right: ShadowFrame, on: Sequence[str]) -> ShadowFrame:
        """Return the rows of `left` with the matching ones of `right`."""
        values = self._host.left_join(left.values, right.values, on)
        plan = EventPlan()
        inputs = {f"left {name}": column for name, column in left.columns.items()}
        inputs |= {f"right {name}": column for name, column in right.columns.items()}
        left_side, right_side = (
            frame_operators.JoinSide(
                [_planned(f"{side} {name}", inputs[f"{side} {name}"]) for name in on],
                [_planned(f"{side} {name}", inputs[f"{side} {name}"]) for name in columns],
            )
            for side, columns in (("left", left.columns), ("right", right.columns))
        )
        planned = frame_operators.left_join(
            plan,
            left_side,
            right_side,
            len(values),
            [null_count(values[name]) for name in values.columns],
            unmatched=_has_unmatched_rows(left.values, right.values, values, on),
        )
        return self._frame(values, self._enactor.run(plan, inputs, planned))

    def concat(self, frames: Sequence[ShadowFrame]) -> ShadowFrame:
        """Return all rows of the frames."""
        values = self._host.concat([frame.values for frame in frames])
        plan = EventPlan()
        inputs = {
            f"{name} of {number}": column
            for number, frame in enumerate(frames)
            for name, column in frame.columns.items()
        }
        planned = [
            operators.concatenate(
                plan,
                [
                    _planned(f"{name} of {number}", frame.columns[name])
                    for number, frame in enumerate(frames)
                ],
            )
            for name in values.columns
        ]
        return self._frame(values, self._enactor.run(plan, inputs, planned))

    # -- training ------------------------------------------------------------------------------

    def training_matrix(
        self, features: ShadowFrame, label: ShadowFrame, missing: float
    ) -> xgb.DMatrix:
        """Build XGBoost's matrix, on the host."""
        return self._host.training_matrix(features.values, label.values, missing)

    # -- column operators ----------------------------------------------------------------------

    def _get(self, frame: ShadowFrame, name: str) -> ShadowColumn:
        return ShadowColumn(frame.values[name], frame.columns[name])

    def _set(self, frame: ShadowFrame, name: str, column: ShadowColumn) -> None:
        device = column.device
        if name not in frame.columns:
            # cuDF copies a column that it adds, but not one that replaces another.
            device = self._copy(device)
        frame.columns[name] = device
        self._host._set(frame.values, name, column.values)

    def _arithmetic(
        self, operator: Arithmetic, left: ShadowColumn, right: ShadowColumn | float
    ) -> ShadowColumn:
        if isinstance(right, ShadowColumn):
            values = self._host._arithmetic(operator, left.values, right.values)
            return self._mapped(values, {"left": left.device, "right": right.device})
        values = self._host._arithmetic(operator, left.values, right)
        return (
            self._divided(values, left)
            if operator == "divide"
            else self._mapped(values, {"left": left.device})
        )

    def _compare(self, operator: Comparison, left: ShadowColumn, right: float) -> ShadowColumn:
        values = self._host._compare(operator, left.values, right)
        return self._mapped(values, {"left": left.device})

    def _floor(self, column: ShadowColumn) -> ShadowColumn:
        return self._divided(self._host._floor(column.values), column)

    def _cast(self, column: ShadowColumn, dtype: DType) -> ShadowColumn:
        values = self._host._cast(column.values, dtype)
        if column.device.shape.dtype != dtype:
            return self._mapped(values, {"column": column.device})
        return ShadowColumn(values, self._copy(column.device))

    def _fill_null(self, column: ShadowColumn, value: float | bool) -> ShadowColumn:  # noqa: FBT001
        plan = EventPlan()
        filled = frame_operators.fill_null(plan, _planned("column", column.device))
        device = self._run_one(plan, {"column": column.device}, filled)
        return ShadowColumn(self._host._fill_null(column.values, value), device)

    def _date_part(self, column: ShadowColumn, part: Literal["year", "month"]) -> ShadowColumn:
        values = self._host._date_part(column.values, part)
        if part not in column.device.derived:
            plan = EventPlan()
            extracted = frame_operators.date_part(plan, _planned("date", column.device))
            column.device.derived[part] = self._run_one(plan, {"date": column.device}, extracted)
        return ShadowColumn(values, column.device.derived[part])

    # -- plans ---------------------------------------------------------------------------------

    def _run_one(
        self, plan: EventPlan, inputs: Mapping[str, DeviceColumn], output: PlannedColumn
    ) -> DeviceColumn:
        return self._enactor.run(plan, inputs, [output])[0]

    def _copy(self, column: DeviceColumn) -> DeviceColumn:
        plan = EventPlan()
        copy = operators.copy_column(plan, _planned("column", column))
        return self._run_one(plan, {"column": column}, copy)

    def _mapped(self, values: pd.Series[Any], inputs: Mapping[str, DeviceColumn]) -> ShadowColumn:
        """Make the device column of an element-wise result."""
        plan = EventPlan()
        result = operators.map_elements(
            plan, _planned_all(inputs), device_type(values), null_count(values)
        )
        return ShadowColumn(values, self._run_one(plan, inputs, result))

    def _divided(self, values: pd.Series[Any], column: ShadowColumn) -> ShadowColumn:
        """Make the device column of a quotient."""
        plan = EventPlan()
        planned = _planned("column", column.device)
        result = frame_operators.divide(plan, planned, null_count(values))
        return ShadowColumn(values, self._run_one(plan, {"column": column.device}, result))

    def _row_labels(self, frame: ShadowFrame) -> DeviceColumn:
        """Return the frame's row labels as a column, which stays with the labels."""
        if frame.labels.column is None:
            plan = EventPlan()
            labels = operators.fill_column(plan, "int64", self.height(frame))
            frame.labels.column = self._run_one(plan, {}, labels)
        return frame.labels.column

    def _frame(self, values: pd.DataFrame, columns: Iterable[DeviceColumn]) -> ShadowFrame:
        return ShadowFrame(values, dict(zip(values.columns, columns, strict=True)), RowLabels())


def _planned(name: str, column: DeviceColumn) -> PlannedColumn:
    return PlannedColumn(name, column.shape)


def _planned_all(columns: Mapping[str, DeviceColumn]) -> list[PlannedColumn]:
    return [_planned(name, column) for name, column in columns.items()]


def _has_unmatched_rows(
    left: pd.DataFrame, right: pd.DataFrame, joined: pd.DataFrame, on: Sequence[str]
) -> bool:
    """Whether a left join found no match for some row: a column without nulls has some now."""
    for name in right.columns:
        if name not in on and null_count(right[name]) == 0:
            return null_count(joined[name]) > 0
    matches = left[list(on)].merge(right[list(on)].drop_duplicates(), how="left", indicator=True)
    return bool((matches["_merge"] == "left_only").any())

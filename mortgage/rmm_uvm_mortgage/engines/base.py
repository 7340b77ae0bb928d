# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The vocabulary in which the mortgage ETL is written: frames, columns and their operators.

An engine works on its own kinds of frame and column; the ETL only passes them around.

* A **column** is immutable. Every operator on columns returns a new one.
* A **frame** is mutable and names columns. `select` and `assign` share columns by reference; a
  column is freed when the last frame or variable that holds it lets go. The ETL rests on this:
  it deletes names as the original notebook does, and the peak of memory follows from it.
* **Nulls** are cuDF's: distinct from every value, absorbed by arithmetic and comparison (a null
  operand gives a null), skipped by aggregation, produced by a left join where nothing matches.
  Floats never hold NaN as a value.
* **Row order** after `groupby` and `left_join` is unspecified.

Not covered: sorting, strings beyond category columns, indexes, more than one device.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from rmm_uvm_mortgage.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa
    import xgboost as xgb

    from rmm_uvm_mortgage.ranges import TextRange

__all__ = [
    "Aggregation",
    "Arithmetic",
    "ColumnT",
    "Comparison",
    "DType",
    "Engine",
    "EngineColumn",
    "FrameT",
    "StageObserver",
]

ColumnT = TypeVar("ColumnT")

Arithmetic = Literal["add", "subtract", "multiply", "divide"]
Comparison = Literal["greater_equal", "greater", "equal"]
DType = Literal["int8", "int16", "int32", "float32", "float64"]


@dataclass(frozen=True, slots=True, eq=False)
class EngineColumn(Generic[ColumnT]):
    """A column of `engine` with arithmetic and comparison operators.

    Parameters
    ----------
    engine : Engine
        Engine that owns `data`.
    data : object
        The engine's own column.
    """

    engine: Engine[Any, ColumnT]
    data: ColumnT

    def _arithmetic(
        self, operator: Arithmetic, other: EngineColumn[ColumnT] | float
    ) -> EngineColumn[ColumnT]:
        operand = other.data if isinstance(other, EngineColumn) else other
        return EngineColumn(self.engine, self.engine._arithmetic(operator, self.data, operand))

    def __add__(self, other: EngineColumn[ColumnT] | float) -> EngineColumn[ColumnT]:
        """Return the sum; null where an operand is."""
        return self._arithmetic("add", other)

    def __sub__(self, other: EngineColumn[ColumnT] | float) -> EngineColumn[ColumnT]:
        """Return the difference; null where an operand is."""
        return self._arithmetic("subtract", other)

    def __mul__(self, other: EngineColumn[ColumnT] | float) -> EngineColumn[ColumnT]:
        """Return the product; null where an operand is."""
        return self._arithmetic("multiply", other)

    def __truediv__(self, other: EngineColumn[ColumnT] | float) -> EngineColumn[ColumnT]:
        """Return the quotient; null where an operand is."""
        return self._arithmetic("divide", other)

    def _compare(self, operator: Comparison, value: float) -> EngineColumn[ColumnT]:
        return EngineColumn(self.engine, self.engine._compare(operator, self.data, value))

    def __ge__(self, value: float) -> EngineColumn[ColumnT]:
        """Return a boolean column; null where this one is."""
        return self._compare("greater_equal", value)

    def __gt__(self, value: float) -> EngineColumn[ColumnT]:
        """Return a boolean column; null where this one is."""
        return self._compare("greater", value)

    def equals(self, value: float) -> EngineColumn[ColumnT]:
        """Return a boolean column; null where this one is."""
        return self._compare("equal", value)

    def floor(self) -> EngineColumn[ColumnT]:
        """Return the largest whole numbers that are not above this float column's values."""
        return EngineColumn(self.engine, self.engine._floor(self.data))

    def cast(self, dtype: DType) -> EngineColumn[ColumnT]:
        """Return the column in another type; nulls stay."""
        return EngineColumn(self.engine, self.engine._cast(self.data, dtype))

    def fill_null(self, value: float | bool) -> EngineColumn[ColumnT]:  # noqa: FBT001
        """Return the column with `value` in place of nulls."""
        return EngineColumn(self.engine, self.engine._fill_null(self.data, value))

    def year(self) -> EngineColumn[ColumnT]:
        """Return the year of a date column, int32."""
        return EngineColumn(self.engine, self.engine._date_part(self.data, "year"))

    def month(self) -> EngineColumn[ColumnT]:
        """Return the month of a date column, 1..12, int32."""
        return EngineColumn(self.engine, self.engine._date_part(self.data, "month"))


FrameT = TypeVar("FrameT")
Aggregation = Literal["max", "min"]


class StageObserver(Protocol):
    """Is told when a stage begins and ends; called in order, and in reverse order at the end."""

    def begin(self, name: str) -> None:
        """Note that stage `name` begins; all work before it is complete."""

    def end(self, name: str) -> None:
        """Note that stage `name` has ended, also when it ended by an exception."""


class Engine(ABC, Generic[FrameT, ColumnT]):
    """The part of a data frame library that the mortgage ETL, PREP and TRAIN need.

    Parameters
    ----------
    observers : sequence of StageObserver
        Told about every stage.

    Notes
    -----
    Not thread-safe: one engine per thread. Methods with a leading underscore are the column
    operators behind :class:`EngineColumn`; subclasses implement them, the ETL does not call them.
    """

    name: str
    """Short name for reports: ``pandas``, ``cudf``, ..."""
    training_device: Literal["cpu", "cuda"]
    """XGBoost device that fits the engine's frames."""

    def __init__(self, observers: Sequence[StageObserver] = ()) -> None:
        self.observers: list[StageObserver] = list(observers)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run the enclosed work as stage `name`.

        Parameters
        ----------
        name : str
            Name of the stage, see :data:`rmm_uvm_mortgage.etl.STAGES`.
        """
        self.synchronize()
        with contextlib.ExitStack() as stack:
            for observer in self.observers:
                observer.begin(name)
                stack.callback(observer.end, name)
            yield
            self.synchronize()

    @contextlib.contextmanager
    def observed_by(self, *observers: StageObserver) -> Iterator[None]:
        """Tell `observers` about the stages of the enclosed work too."""
        self.observers += observers
        try:
            yield
        finally:
            for observer in observers:
                self.observers.remove(observer)

    def synchronize(self) -> None:
        """Wait for all work that was issued; nothing to do for an engine that does not defer."""

    # -- frames in and out ---------------------------------------------------------------------

    @abstractmethod
    def read_text(
        self, source: TextRange, schema: TableSchema, domains: Mapping[str, Sequence[str]]
    ) -> FrameT:
        """Read a range of whole lines of a text file, category columns as codes.

        Parameters
        ----------
        source : TextRange
            File and byte range; holds no header line.
        schema : TableSchema
            Columns, in file order.
        domains : mapping of str to sequence of str
            Sorted values of every category domain; a code (int32) is a value's position there.

        Raises
        ------
        DataError
            A field does not fit its column, or a category value is not in its domain.
        """

    @abstractmethod
    def to_host(self, frame: FrameT) -> pa.Table:
        """Copy a frame to an Arrow table in host memory."""

    @abstractmethod
    def from_host(self, table: pa.Table) -> FrameT:
        """Copy an Arrow table of float32 and int32 columns without nulls to a frame."""

    @abstractmethod
    def height(self, frame: FrameT) -> int:
        """Return the number of rows."""

    @abstractmethod
    def column_names(self, frame: FrameT) -> list[str]:
        """Return the column names in order."""

    # -- columns of a frame --------------------------------------------------------------------

    def column(self, frame: FrameT, name: str) -> EngineColumn[ColumnT]:
        """Return a column of a frame, shared by reference."""
        return EngineColumn(self, self._get(frame, name))

    def assign(self, frame: FrameT, name: str, column: EngineColumn[ColumnT]) -> None:
        """Add a column to a frame, or replace it, by reference; the frame is changed."""
        self._set(frame, name, column.data)

    @abstractmethod
    def assign_constant(self, frame: FrameT, name: str, value: int, dtype: DType) -> None:
        """Add a column that holds `value` in every row; the frame is changed."""

    @abstractmethod
    def drop(self, frame: FrameT, names: Sequence[str]) -> None:
        """Remove columns; the frame is changed."""

    @abstractmethod
    def rename(self, frame: FrameT, names: Mapping[str, str]) -> FrameT:
        """Return a frame that shares all columns, some under new names."""

    @abstractmethod
    def select(self, frame: FrameT, names: Sequence[str]) -> FrameT:
        """Return a frame that shares the named columns."""

    # -- tables --------------------------------------------------------------------------------

    @abstractmethod
    def filter(self, frame: FrameT, mask: EngineColumn[ColumnT]) -> FrameT:
        """Return the rows where `mask` is true; null counts as false."""

    @abstractmethod
    def groupby(
        self, frame: FrameT, keys: Sequence[str], aggregations: Mapping[str, Aggregation]
    ) -> FrameT:
        """Return one row per distinct key: key columns, then aggregated columns by their names.

        An aggregate over nulls only is null. Keys hold no nulls.
        """

    @abstractmethod
    def left_join(self, left: FrameT, right: FrameT, on: Sequence[str]) -> FrameT:
        """Return all rows of `left` with the other columns of the matching rows of `right`.

        Null keys match null keys. Apart from `on` the two have no column name in common. An
        integer column of `right` may come back as float64 where rows find no match: cuDF does
        that, pandas does not. Values are equal, being far below 2**53.
        """

    @abstractmethod
    def concat(self, frames: Sequence[FrameT]) -> FrameT:
        """Return all rows of frames with equal columns, in order."""

    # -- training ------------------------------------------------------------------------------

    @abstractmethod
    def training_matrix(self, features: FrameT, label: FrameT, missing: float) -> xgb.DMatrix:
        """Build XGBoost's matrix from a frame of features and a frame with one label column."""

    def train(self, parameters: Mapping[str, Any], matrix: xgb.DMatrix, rounds: int) -> xgb.Booster:
        """Train a model with XGBoost on the engine's training device."""
        import xgboost as xgb

        return xgb.train(
            {**parameters, "device": self.training_device}, matrix, num_boost_round=rounds
        )

    # -- column operators, see EngineColumn -----------------------------------------------------

    @abstractmethod
    def _get(self, frame: FrameT, name: str) -> ColumnT: ...

    @abstractmethod
    def _set(self, frame: FrameT, name: str, column: ColumnT) -> None: ...

    @abstractmethod
    def _arithmetic(
        self, operator: Arithmetic, left: ColumnT, right: ColumnT | float
    ) -> ColumnT: ...

    @abstractmethod
    def _compare(self, operator: Comparison, left: ColumnT, right: float) -> ColumnT: ...

    @abstractmethod
    def _floor(self, column: ColumnT) -> ColumnT: ...

    @abstractmethod
    def _cast(self, column: ColumnT, dtype: DType) -> ColumnT: ...

    @abstractmethod
    def _fill_null(self, column: ColumnT, value: float | bool) -> ColumnT: ...  # noqa: FBT001

    @abstractmethod
    def _date_part(self, column: ColumnT, part: Literal["year", "month"]) -> ColumnT: ...

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Columns of any engine, with the arithmetic in which the mortgage ETL is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from rmm_uvm.mortgage.engines.base import Engine

ColumnT = TypeVar("ColumnT")

Arithmetic = Literal["add", "subtract", "multiply", "divide"]
Comparison = Literal["greater_equal", "greater", "equal"]
DType = Literal["int8", "int16", "int32", "float32", "float64"]


@dataclass(frozen=True, slots=True, eq=False)
class Column(Generic[ColumnT]):
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

    def _arithmetic(self, operator: Arithmetic, other: Column[ColumnT] | float) -> Column[ColumnT]:
        operand = other.data if isinstance(other, Column) else other
        return Column(self.engine, self.engine._arithmetic(operator, self.data, operand))

    def __add__(self, other: Column[ColumnT] | float) -> Column[ColumnT]:
        """Return the sum; null where an operand is."""
        return self._arithmetic("add", other)

    def __sub__(self, other: Column[ColumnT] | float) -> Column[ColumnT]:
        """Return the difference; null where an operand is."""
        return self._arithmetic("subtract", other)

    def __mul__(self, other: Column[ColumnT] | float) -> Column[ColumnT]:
        """Return the product; null where an operand is."""
        return self._arithmetic("multiply", other)

    def __truediv__(self, other: Column[ColumnT] | float) -> Column[ColumnT]:
        """Return the quotient; null where an operand is."""
        return self._arithmetic("divide", other)

    def _compare(self, operator: Comparison, value: float) -> Column[ColumnT]:
        return Column(self.engine, self.engine._compare(operator, self.data, value))

    def __ge__(self, value: float) -> Column[ColumnT]:
        """Return a boolean column; null where this one is."""
        return self._compare("greater_equal", value)

    def __gt__(self, value: float) -> Column[ColumnT]:
        """Return a boolean column; null where this one is."""
        return self._compare("greater", value)

    def equals(self, value: float) -> Column[ColumnT]:
        """Return a boolean column; null where this one is."""
        return self._compare("equal", value)

    def floor(self) -> Column[ColumnT]:
        """Return the largest whole numbers that are not above this float column's values."""
        return Column(self.engine, self.engine._floor(self.data))

    def cast(self, dtype: DType) -> Column[ColumnT]:
        """Return the column in another type; nulls stay."""
        return Column(self.engine, self.engine._cast(self.data, dtype))

    def fill_null(self, value: float | bool) -> Column[ColumnT]:  # noqa: FBT001
        """Return the column with `value` in place of nulls."""
        return Column(self.engine, self.engine._fill_null(self.data, value))

    def year(self) -> Column[ColumnT]:
        """Return the year of a date column, int32."""
        return Column(self.engine, self.engine._date_part(self.data, "year"))

    def month(self) -> Column[ColumnT]:
        """Return the month of a date column, 1..12, int32."""
        return Column(self.engine, self.engine._date_part(self.data, "month"))

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Columns of synthetic loans as lines of text in the data set's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rmm_uvm_mortgage.schema import CLOSED_DOMAINS, DELIMITER, ColumnSpec, TableSchema
from rmm_uvm_mortgage.synthetic.loans import RENAMED_SELLERS, SELLERS, SERVICERS

if TYPE_CHECKING:
    import pyarrow as pa

DOMAINS: dict[str, tuple[str, ...]] = {
    **CLOSED_DOMAINS,
    "seller": SELLERS,
    "servicer": SERVICERS,
}
"""What a category's position in a synthetic column stands for."""

_FIRST_YEAR, _LAST_YEAR = 1970, 2150
_COMMON_NUMBERS = 1 << 15
"""Numbers below are looked up as text, which takes a tenth of the time of printing them."""


class LineFormatter:
    """Turns columns into text. Thread-safe: it only reads its own tables."""

    def __init__(self) -> None:
        import pyarrow as pa

        self._dates = pa.array(
            f"{month:02d}/01/{year}"
            for year in range(_FIRST_YEAR, _LAST_YEAR)
            for month in range(1, 13)
        )
        self._domains = {name: pa.array(values) for name, values in DOMAINS.items()}
        self._numbers = pa.array(str(number) for number in range(_COMMON_NUMBERS))

    def format(self, schema: TableSchema, columns: Mapping[str, Any]) -> bytes:
        """Return one line for each row.

        Parameters
        ----------
        schema : TableSchema
            The table; gives the order of columns.
        columns : mapping of str to ndarray
            One array for each column: floats with NaN for null; whole numbers, months since
            year 0 and positions of categories with -1 for null.
        """
        import pyarrow as pa
        from pyarrow import csv

        table = pa.table({c.name: self._array(c, columns[c.name]) for c in schema.columns})
        sink = pa.BufferOutputStream()
        options = csv.WriteOptions(include_header=False, delimiter=DELIMITER, quoting_style="none")
        csv.write_csv(table, sink, options)
        return bytes(sink.getvalue().to_pybytes())

    def _array(self, spec: ColumnSpec, values: Any) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        if values.dtype.kind == "f":
            return pa.array(values, from_pandas=True)
        is_null = values < 0
        if is_null.all():
            return pa.nulls(len(values), pa.string())
        first = 0
        if spec.type == "date":
            text, first = self._dates, 12 * _FIRST_YEAR
        elif spec.domain is not None:
            text = self._domains[spec.domain]
        elif values.max() < _COMMON_NUMBERS:
            text = self._numbers
        else:
            return pa.array(values, mask=is_null)
        return text.take(pa.array((values - first).astype(np.int32), mask=is_null))


def header_line(schema: TableSchema) -> bytes:
    """Return the first line of a file, which every reader discards."""
    return (DELIMITER.join(schema.column_names) + "\n").encode()


def names_lines() -> bytes:
    """Return the data lines of ``names.csv``."""
    return "".join(f"{old}{DELIMITER}{new}\n" for old, new in RENAMED_SELLERS.items()).encode()


def sorted_domains() -> dict[str, tuple[str, ...]]:
    """Return every value that synthetic data may hold, by domain, sorted."""
    sellers = {*SELLERS, *RENAMED_SELLERS.values()}
    domains = {**DOMAINS, "seller": tuple(sellers)}
    return {name: tuple(sorted(values)) for name, values in domains.items()}

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reading the data set's text files with Arrow, on the host.

Both the pandas engine and the scan for category values read by this module, so that what one
accepts the other accepts as well.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rmm_uvm.errors import DataError
from rmm_uvm_mortgage.ranges import TextRange
from rmm_uvm_mortgage.schema import DATE_FORMATS, DELIMITER, NULL_FIELDS, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv

_BLOCK_BYTES = 8 << 20
_REQUIRED_COLUMNS = ("loan_id", "monthly_reporting_period")


def read_table(source: TextRange, schema: TableSchema) -> pa.Table:
    """Read whole lines into an Arrow table, category columns as dictionaries of strings.

    Parameters
    ----------
    source : TextRange
        Lines of one file.
    schema : TableSchema
        Columns, in file order.

    Raises
    ------
    DataError
        A line has another number of columns, a field does not fit its column's type, a date is
        no date, or a row has no loan or no month.
    """
    import pyarrow as pa
    from pyarrow import csv

    try:
        # The mapping is not closed by hand: the parsed table may still refer to it.
        with source.path.open("rb") as file:
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        lines = pa.py_buffer(memoryview(text)[source.begin_bytes : source.end_bytes])
        table = csv.read_csv(pa.BufferReader(lines), *_options(schema))
    except OSError as error:
        raise DataError(f"{source.path} cannot be read: {error.strerror or error}") from error
    except pa.ArrowInvalid as error:
        raise _broken(source, error) from error
    _check_required(source, table)
    return table


def scan_batches(
    source: TextRange, schema: TableSchema, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read whole lines in batches of a few MiB, so that memory stays bounded.

    Parameters
    ----------
    source : TextRange
        Lines of one file.
    schema : TableSchema
        Columns, in file order.
    columns : sequence of str or None
        Columns to convert; None for all.

    Raises
    ------
    DataError
        See `read_table`.
    """
    import pyarrow as pa
    from pyarrow import csv

    try:
        file = pa.OSFile(str(source.path))
        file.seek(source.begin_bytes)
        with csv.open_csv(file, *_options(schema, columns)) as reader:
            for batch in reader:
                _check_required(source, batch)
                yield batch
    except OSError as error:
        raise DataError(f"{source.path} cannot be read: {error.strerror or error}") from error
    except pa.ArrowInvalid as error:
        raise _broken(source, error) from error


def _options(
    schema: TableSchema, columns: Sequence[str] | None = None
) -> tuple[csv.ReadOptions, csv.ParseOptions, csv.ConvertOptions]:
    import pyarrow as pa
    from pyarrow import csv

    types = {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "float64": pa.float64(),
        "date": pa.timestamp("ms"),
        "category": pa.dictionary(pa.int32(), pa.string()),
    }
    return (
        csv.ReadOptions(column_names=list(schema.column_names), block_size=_BLOCK_BYTES),
        csv.ParseOptions(delimiter=DELIMITER, quote_char=False),
        csv.ConvertOptions(
            column_types={column.name: types[column.type] for column in schema.columns},
            include_columns=None if columns is None else list(columns),
            null_values=list(NULL_FIELDS),
            strings_can_be_null=True,
            timestamp_parsers=list(DATE_FORMATS),
        ),
    )


def _broken(source: TextRange, error: Exception) -> DataError:
    reason = str(error).splitlines()[0].rstrip(".")
    return DataError(f"{source.path} is broken: {reason}. Repair or remove the file")


def _check_required(source: TextRange, table: pa.Table | pa.RecordBatch) -> None:
    for name in _REQUIRED_COLUMNS:
        if name in table.schema.names and (nulls := table.column(name).null_count):
            raise DataError(
                f"{source.path} is broken: {nulls} rows have no {name}. Repair or remove the file"
            )

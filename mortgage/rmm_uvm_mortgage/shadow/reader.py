# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The plan of cuDF's CSV reader: what it does to device memory.

The reader brings the text to the device in pieces of 64 MiB. The buffer of the text and the one
of the row offsets are sized exactly at every piece, so each piece copies all earlier ones; at the
last piece the text exists twice. Text and offsets then stay until all columns are made, and so
do, for string columns, the pairs of pointer and length that the fields are decoded to.

References
----------
cpp/src/io/csv/reader_impl.cu `load_data_and_gather_row_offsets`, `decode_data`, `read_csv`;
cpp/src/io/utilities/column_buffer.cpp; cpp/include/cudf/io/csv.hpp `get_byte_range_padding`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm_mortgage.shadow.operators import make_strings
from rmm_uvm_mortgage.shadow.plan import Buffer, EventPlan, PlannedColumn, WorkSpace
from rmm_uvm_mortgage.shadow.sizes import STRING_PAIR_BYTES, ColumnShape, mask_bytes

CHUNK_BYTES = 64 << 20
ROW_OFFSET_BYTES = 8


def read_csv(
    plan: EventPlan, text_bytes: int, columns: Sequence[ColumnShape]
) -> list[PlannedColumn]:
    """Read text with one row for each line.

    Parameters
    ----------
    plan : EventPlan
        Grows by the call's events.
    text_bytes : int
        Bytes of the range that is read, > 0.
    columns : sequence of ColumnShape
        Columns in file order. All but strings get a mask even without nulls.

    Returns
    -------
    list of PlannedColumn
        The columns read.
    """
    rows = columns[0].rows
    text, offsets = _load_text(plan, text_bytes, rows)

    numbers: dict[int, PlannedColumn] = {}
    strings: dict[int, tuple[WorkSpace, WorkSpace]] = {}
    for position, shape in enumerate(columns):
        if shape.dtype == "string":
            pairs = plan.allocate("string_pairs", rows * STRING_PAIR_BYTES)
            strings[position] = (pairs, plan.allocate("string_valid", mask_bytes(rows)))
        else:
            masked = shape.with_nulls(shape.null_count, has_mask=True)
            numbers[position] = plan.allocate_column("column", masked)
    quoted = [plan.allocate("quoted", rows) for _ in strings]
    decoded: list[Buffer] = [b for column in numbers.values() for b in column.buffers]
    decoded += [b for spaces in strings.values() for space in spaces for b in space.buffers]
    plan.kernel([text, offsets], [*decoded, *quoted])

    made = {
        position: make_strings(plan, pairs, text, columns[position])
        for position, (pairs, _) in strings.items()
    }
    for pairs, valid in strings.values():
        plan.free(valid, pairs)
    plan.free(*quoted, offsets, text)
    return [(numbers | made)[position] for position in range(len(columns))]


def _load_text(plan: EventPlan, text_bytes: int, rows: int) -> tuple[WorkSpace, WorkSpace]:
    """Bring text to the device and find where its rows begin."""
    ends = [*range(CHUNK_BYTES, text_bytes, CHUNK_BYTES), text_bytes]
    text = plan.allocate("text", min(2 * CHUNK_BYTES, text_bytes))
    capacity = min(2 * CHUNK_BYTES, text_bytes)
    offsets: WorkSpace | None = None
    for end in ends:
        if end > capacity:
            larger = plan.allocate("text", end)
            plan.kernel([text], [larger])
            plan.free(text)
            text, capacity = larger, end
        row_ends = (rows * end // text_bytes + 1) * ROW_OFFSET_BYTES
        larger_offsets = plan.allocate("row_offsets", row_ends)
        if offsets is not None:
            plan.kernel([offsets], [larger_offsets])
            plan.free(offsets)
        offsets = larger_offsets
        plan.kernel([text], [text, offsets])
    assert offsets is not None  # text_bytes > 0, so there is at least one piece
    return text, offsets

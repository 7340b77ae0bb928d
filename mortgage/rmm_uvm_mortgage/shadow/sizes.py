# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How many bytes libcudf 26.10 asks for: columns, null masks, hash tables, work space.

Pure arithmetic. Which operator allocates which of these, and in what order, is in
:mod:`rmm_uvm_mortgage.shadow.operators`; `docs/understand/shadow-sizing.md` has the whole table
with the libcudf source of every rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

DeviceType = Literal[
    "bool", "int8", "int16", "int32", "int64", "float32", "float64", "timestamp", "string"
]
"""Types of device columns; a timestamp has 8 bytes whatever its resolution."""

ITEM_BYTES: dict[DeviceType, int] = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float32": 4,
    "float64": 8,
    "timestamp": 8,
}

INDEX_BYTES = 4
"""libcudf `size_type`: row indices, gather maps, string offsets."""

MASK_PADDING_BYTES = 64
HASH_LOAD_FACTOR = 0.5
JOIN_SLOT_BYTES = 8
"""A row hash and a row index."""
GROUPBY_SLOT_BYTES = INDEX_BYTES
STRING_PAIR_BYTES = 16
"""A pointer and a length, padded."""
MEMCPY_WORK_BYTES = 24
"""CUB's batched copy keeps source, target, size and block offset of every string."""


@dataclass(frozen=True, slots=True)
class ColumnShape:
    """Everything about a device column that its size depends on.

    Parameters
    ----------
    dtype : str
        Type of the elements.
    rows : int
        Number of rows, >= 0.
    null_count : int
        Null rows, 0..rows.
    has_mask : bool
        Whether a null mask is allocated; libcudf keeps masks that mark no null.
    text_bytes : int
        Characters of a string column, in bytes; 0 for other types.
    """

    dtype: DeviceType
    rows: int
    null_count: int = 0
    has_mask: bool = False
    text_bytes: int = 0

    @property
    def buffers(self) -> dict[str, int]:
        """Buffers by role and their bytes, in libcudf's order of allocation; no empty ones."""
        if self.dtype == "string":
            data = {"offsets": (self.rows + 1) * INDEX_BYTES, "text": self.text_bytes}
        else:
            data = {"data": self.rows * ITEM_BYTES[self.dtype]}
        if self.has_mask:
            data["mask"] = mask_bytes(self.rows)
        return {role: nbytes for role, nbytes in data.items() if nbytes > 0 and self.rows > 0}

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers as requested, before a resource rounds them up."""
        return sum(self.buffers.values())

    def with_nulls(self, null_count: int, *, has_mask: bool) -> ColumnShape:
        """Return the shape with other nulls."""
        return replace(self, null_count=null_count, has_mask=has_mask)


def mask_bytes(rows: int) -> int:
    """Return the bytes of a null mask: a bit for each row, padded to 64 bytes.

    Notes
    -----
    libcudf `bitmask_allocation_size_bytes`, cpp/src/bitmask/null_mask.cu.
    """
    bits = -(-rows // 8)
    return -(-bits // MASK_PADDING_BYTES) * MASK_PADDING_BYTES


def join_table_bytes(rows: int) -> int:
    """Return the bytes of the hash table that a join builds over its right table.

    Notes
    -----
    libcudf `hash_join`, cpp/src/join/hash_join/hash_join.cu: a cuco multiset of (hash, row) at
    load factor 0.5. The rounding of the bucket count to a prime is left out.
    """
    return int(rows / HASH_LOAD_FACTOR) * JOIN_SLOT_BYTES


def groupby_set_bytes(rows: int) -> int:
    """Return the bytes of the hash set of row indices that a groupby builds over its keys.

    Notes
    -----
    libcudf `compute_groupby`, cpp/src/groupby/hash/compute_groupby.cu: sized by the rows, not by
    the distinct keys, which are not known yet.
    """
    return int(rows / HASH_LOAD_FACTOR) * GROUPBY_SLOT_BYTES


def index_bytes(rows: int) -> int:
    """Return the bytes of a row index for each of `rows`, as gather maps and mappings have."""
    return rows * INDEX_BYTES

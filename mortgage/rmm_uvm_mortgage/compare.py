# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Comparing the features of two runs, whatever the order of their rows.

The canonical order is by all columns, those that hold only whole numbers first: floats may differ
in their last digits between engines, and should decide the order as late as possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

RELATIVE_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class FeatureDifference:
    """The first difference found between two tables of features.

    Parameters
    ----------
    column : str or None
        Where they differ; None when it is not in one column.
    reason : str
        What differs.
    rows : int
        Number of rows that differ in that column, of the canonical order.
    """

    column: str | None
    reason: str
    rows: int = 0

    def __str__(self) -> str:
        """Return one line for a report."""
        where = f"{self.column}: " if self.column else ""
        return f"{where}{self.reason}" + (f" ({self.rows} rows)" if self.rows else "")


def compare_features(a: pa.Table, b: pa.Table) -> FeatureDifference | None:
    """Return the first difference between two tables of features, or None.

    Whole numbers must be equal, other floats equal to a relative 1e-6. The order of rows and of
    columns does not count.

    Parameters
    ----------
    a, b : pyarrow.Table
        Results of the ETL, float32 and int32 columns without nulls.
    """
    import numpy as np

    if set(a.column_names) != set(b.column_names):
        odd = sorted(set(a.column_names) ^ set(b.column_names))
        return FeatureDifference(None, f"columns in only one table: {', '.join(odd)}")
    if a.num_rows != b.num_rows:
        return FeatureDifference(None, f"{a.num_rows} and {b.num_rows} rows")
    left, right = _columns(a), _columns(b)
    whole = [name for name in sorted(left) if _is_whole(left[name]) and _is_whole(right[name])]
    names = whole + [name for name in sorted(left) if name not in whole]
    left, right = _canonical(left, names), _canonical(right, names)
    for name in names:
        if name in whole:
            differs = left[name] != right[name]
        else:
            differs = ~np.isclose(left[name], right[name], rtol=RELATIVE_TOLERANCE, atol=0)
        if rows := int(differs.sum()):
            first = int(np.argmax(differs))
            reason = f"{left[name][first]} and {right[name][first]} in the first row that differs"
            return FeatureDifference(name, reason, rows)
    return None


def features_digest(tables: Iterable[pa.Table]) -> str:
    """Return a digest of the rows of tables, independent of the order of rows and columns.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        Results of the ETL.

    Returns
    -------
    str
        16 hexadecimal digits. Equal for equal rows; floats that differ in the last digit
        change it, so use `compare_features` to tell whether that matters.
    """
    import numpy as np

    total = 0
    for table in tables:
        rows = np.zeros(table.num_rows, np.uint64)
        for salt, name in enumerate(sorted(table.column_names), start=1):
            column = table.column(name).to_numpy().astype(np.float32) + np.float32(0)
            rows ^= _mix(column.view(np.uint32).astype(np.uint64) + np.uint64(salt << 32))
        total += int(_mix(rows).sum(dtype=np.uint64))
    return f"{total % 2**64:016x}"


def combined_digest(digests: Iterable[str]) -> str:
    """Return the digest of all rows together, from the digests of some tables each.

    Parameters
    ----------
    digests : iterable of str
        From `features_digest`; their order does not count.

    Examples
    --------
    >>> combined_digest(["0000000000000001", "ffffffffffffffff"])
    '0000000000000000'
    """
    return f"{sum(int(digest, 16) for digest in digests) % 2**64:016x}"


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scatter 64-bit values (the finalizer of SplitMix64)."""
    import numpy as np

    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _columns(table: pa.Table) -> dict[str, npt.NDArray[Any]]:
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _is_whole(values: npt.NDArray[Any]) -> bool:
    import numpy as np

    return bool((values == np.floor(values)).all())


def _canonical(
    columns: dict[str, npt.NDArray[Any]], names: list[str]
) -> dict[str, npt.NDArray[Any]]:
    import numpy as np

    order = np.lexsort([columns[name] for name in reversed(names)])
    return {name: columns[name][order] for name in names}

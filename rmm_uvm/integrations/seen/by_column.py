# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of libcudf that do the same with each column of a table: one after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rmm_uvm.integrations.seen.announcer import Parts

__all__ = ["ByColumn"]

# Their first argument is a table; what they do with a column depends on no other column.
_OF_A_TABLE = (
    "copying.gather",
    "stream_compaction.apply_retention_mask",
    "stream_compaction.apply_boolean_mask",
    "stream_compaction.apply_deletion_mask",
    "filling.repeat",
    "reshape.tile",
)
_OF_TABLES = "concatenate.concatenate"


class ByColumn:
    """Divides calls by the columns of their tables: the same results, and less at once.

    Parameters
    ----------
    plc : module
        pylibcudf.
    """

    def __init__(self, plc: Any) -> None:
        self._table = plc.Table

    def divider(self, label: str) -> Callable[..., Parts | None] | None:
        """Return what divides calls of a function; None for one that cannot be divided."""
        if label in _OF_A_TABLE:
            return self._of_a_table
        return self._of_tables if label == _OF_TABLES else None

    def _of_a_table(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts | None:
        if not args or type(args[0]) is not self._table:
            return None
        columns = args[0].columns()
        if len(columns) < 2:
            return None
        rest = args[1:]
        return Parts([((self._table([column]), *rest), kwargs) for column in columns], self._joined)

    def _of_tables(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts | None:
        tables = args[0] if args else ()
        if not isinstance(tables, list) or any(type(each) is not self._table for each in tables):
            return None
        by_table = [table.columns() for table in tables]
        if len({len(columns) for columns in by_table}) != 1 or len(by_table[0]) < 2:
            return None  # none, or tables that do not fit each other: it is told so
        rest = args[1:]
        calls = [((list(columns), *rest), kwargs) for columns in zip(*by_table, strict=True)]
        return Parts(calls, self._table)

    def _joined(self, tables: list[Any]) -> Any:
        return self._table(functools.reduce(list.__add__, (each.columns() for each in tables)))

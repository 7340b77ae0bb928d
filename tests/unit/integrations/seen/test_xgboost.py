# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that XGBoost is given are announced as one; its module of data is played by another."""

from __future__ import annotations

import types
from typing import Any

import pytest

from rmm_uvm.integrations.seen.xgboost import XgboostData, wire_xgboost_data


class Interface:
    """A column that is looked at by its interface."""

    def __init__(self, buffer: Any) -> None:
        self._held = buffer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self._held.ptr, False), "shape": (self._held.size,), "typestr": "|u1"}


class TransformedDf:
    def array_interface(self) -> bytes:
        return b"interfaces"


class CudfTransformed(TransformedDf):
    def __init__(self, columns: Any, temporary_buffers: Any) -> None:
        self.columns, self.temporary_buffers = columns, temporary_buffers


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, residency: Any) -> list[int]:
    """How many uses each announcement had."""
    counts: list[int] = []
    monkeypatch.setattr(
        "rmm_uvm.integrations.seen.announcer.Announcer.tell",
        lambda _self, uses, _stream, **_: counts.append(len(uses)),
    )
    return counts


def test_a_frame_is_announced_as_one_where_it_is_handed_over(
    residency: Any, play: Any, full: Any, told: Any
) -> None:
    data = play("xgboost.data", CudfTransformed=CudfTransformed)
    seam = XgboostData([residency])
    seam.attach_when_imported()
    columns = [Interface(each) for each in full[:2]]
    frame = data.CudfTransformed(columns, [(Interface(full[2]),)])
    assert told == []
    assert frame.array_interface() == b"interfaces"
    assert told == [3]
    seam.detach()
    assert frame.array_interface() == b"interfaces"
    assert told == [3]
    assert "array_interface" not in vars(CudfTransformed)


def test_so_it_is_in_versions_before(residency: Any, play: Any, full: Any, told: Any) -> None:
    def interfaces(frame: Any, cat_codes: list[Any]) -> bytes:
        return b"interfaces"

    data = play("xgboost.data", _cudf_array_interfaces=interfaces)
    seam = XgboostData([residency])
    seam.attach_when_imported()
    assert data._cudf_array_interfaces(Interface(full[0]), cat_codes=[Interface(full[1])])
    assert told == [2]
    seam.detach()
    assert data._cudf_array_interfaces is interfaces


def test_categories_are_announced_by_their_column(
    residency: Any, play: Any, full: Any, told: Any
) -> None:
    play("pylibcudf", **_pylibcudf())
    data = play("xgboost.data", CudfTransformed=CudfTransformed)
    seam = XgboostData([residency])
    seam.attach_when_imported()
    accessor = type("CategoricalAccessor", (), {"__module__": "cudf.core.column.categorical"})()
    accessor._column = types.SimpleNamespace(plc_column=_PlcColumn(full[0]))
    data.CudfTransformed([accessor], []).array_interface()
    assert told == [1]
    seam.detach()


class DataType:
    def id(self) -> int:
        return 3


INT32 = DataType()


class _PlcColumn:
    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer

    def data(self) -> Any:
        return self._buffer

    def null_mask(self) -> None:
        return None

    def children(self) -> list[Any]:
        return []

    def size(self) -> int:
        return int(self._buffer.size)

    def offset(self) -> int:
        return 0

    def type(self) -> Any:
        return INT32


def _pylibcudf() -> dict[str, Any]:
    kinds = types.SimpleNamespace(STRUCT=28, STRING=23, LIST=24, DICTIONARY32=22)
    return {
        "Column": _PlcColumn,
        "Table": type("Table", (), {}),
        "types": types.SimpleNamespace(TypeId=kinds, size_of=lambda _type: 1),
        "traits": types.SimpleNamespace(is_fixed_width=lambda _type: True),
    }


def test_without_xgboost_the_table_says_so(residency: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    wiring = wire_xgboost_data([residency])
    assert (wiring.active, wiring.reason) == (False, "XGBoost is not installed")

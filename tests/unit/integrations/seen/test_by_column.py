# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that do the same with each column are made column by column where all does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.integrations.seen.libcudf import LibcudfCalls

from . import test_libcudf as libcudf

MIB = 1 << 20
Made = list[tuple[int, Any]]


@pytest.fixture
def mr() -> Any:
    return rmm_uvm.managed_pool(
        driver="simulated:256MiB", device_budget="16MiB", maximum_pool_size="192MiB"
    )


@pytest.fixture
def came() -> list[int]:
    """What had been fetched at each gather."""
    return []


@pytest.fixture
def made(mr: Any, came: list[int], monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Columns of each call that was made, and what else it was given."""
    calls: Made = []

    def gather(source: Any, gather_map: Any, stream: Any = None) -> Any:
        """gather(Table source, Column gather_map, stream=None) -> Table"""
        if gather_map == "broken":
            raise ValueError("broken")
        came.append(fetched(mr))
        calls.append((len(source.columns()), (gather_map, stream)))
        return libcudf.Table([("gathered", column) for column in source.columns()])

    def concatenate(objects: list[Any], stream: Any = None) -> Any:
        """concatenate(list objects, stream=None) -> ColumnOrTable"""
        calls.append((len(objects), stream))
        if isinstance(objects[0], libcudf.Table):
            return libcudf.Table(list(zip(*(each.columns() for each in objects), strict=True)))
        return tuple(objects)

    plc = libcudf.play(monkeypatch, gather=gather, concatenate=concatenate)
    seen = LibcudfCalls([mr.managed_mr.residency])
    seen.attach_when_imported()
    yield calls
    seen.detach()
    assert plc.copying.gather is gather
    del plc.copying.gather  # it holds the pool


@pytest.fixture
def plc(made: Made) -> Any:
    import pylibcudf  # type: ignore[import-not-found, unused-ignore]

    return pylibcudf


def fetched(mr: Any) -> int:
    return int(mr.managed_mr.residency.residency()["fetched_bytes"])


def test_table_that_does_not_fit_with_its_result_is_gathered_by_column(
    plc: Any, mr: Any, made: Made
) -> None:
    columns = libcudf.fill(mr, 8, 4 * MIB)
    table = plc.Table(columns[:3])

    result = plc.copying.gather(table, "map", stream=None)

    assert made == [(1, ("map", None))] * 3
    assert result.columns() == [("gathered", column) for column in columns[:3]]
    assert mr.managed_mr.residency.residency()["too_large"] == 0


def test_each_column_comes_for_its_part(plc: Any, mr: Any, made: Made, came: list[int]) -> None:
    columns = libcudf.fill(mr, 12, 4 * MIB)
    before = fetched(mr)
    plc.copying.gather(plc.Table(columns[:3]), None)
    assert len(made) == 3
    assert [each - before for each in came] == [4 * MIB, 8 * MIB, 12 * MIB]


def test_what_fits_is_one_call(plc: Any, mr: Any, made: Made) -> None:
    columns = libcudf.fill(mr, 12, 2 * MIB)
    plc.copying.gather(plc.Table(columns[:3]), None)
    assert [count for count, _ in made] == [3]


def test_nothing_is_divided_while_all_is_present(plc: Any, mr: Any, made: Made) -> None:
    columns = [libcudf.column_of(mr, 6 * MIB), libcudf.column_of(mr, 6 * MIB)]
    plc.copying.gather(plc.Table(columns), None)
    assert [count for count, _ in made] == [2]


def test_tables_are_concatenated_by_column(plc: Any, mr: Any, made: Made) -> None:
    columns = libcudf.fill(mr, 8, 4 * MIB)
    tables = [plc.Table(columns[:2]), plc.Table(columns[2:4])]

    result = plc.concatenate.concatenate(tables)

    assert [count for count, _ in made] == [2, 2]
    expected = [(columns[0], columns[2]), (columns[1], columns[3])]
    assert result.columns() == expected


@pytest.mark.parametrize("odd", ["columns", "of other lengths", "none"])
def test_what_cannot_be_divided_is_one_call(odd: str, plc: Any, mr: Any, made: Made) -> None:
    columns = libcudf.fill(mr, 8, 4 * MIB)
    given: dict[str, Callable[[], Any]] = {
        "columns": lambda: columns[:4],
        "of other lengths": lambda: [plc.Table(columns[:3]), plc.Table(columns[3:5])],
        "none": lambda: [plc.Table([]), plc.Table([])],
    }
    objects = given[odd]()
    try:
        plc.concatenate.concatenate(objects)
    except ValueError:  # tables of other lengths: as ever
        assert odd == "of other lengths"
    assert [count for count, _ in made] == [len(objects)]


def test_error_of_a_part_is_the_calls(plc: Any, mr: Any, made: Made) -> None:
    columns = libcudf.fill(mr, 8, 4 * MIB)
    with pytest.raises(ValueError, match="broken"):
        plc.copying.gather(plc.Table(columns[:3]), "broken")
    assert made == []


def test_emulation_of_a_smaller_card_divides_nothing(
    monkeypatch: pytest.MonkeyPatch, mr: Any, plc: Any, made: Made
) -> None:
    columns = libcudf.fill(mr, 8, 4 * MIB)
    budget = mr.managed_mr.residency.budget
    mr.set_budget(rmm_uvm.residency.Budget(budget.budget_bytes, policy="fifo", fetch=False))
    plc.copying.gather(plc.Table(columns[:3]), None)
    assert [count for count, _ in made] == [3]

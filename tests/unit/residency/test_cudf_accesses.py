# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What cuDF asks access to is announced; cuDF is played by modules with its calls of 26.10."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import MonitorWarning
from rmm_uvm.integrations.cudf_accesses import observe, wire_accesses

MIB = 1 << 20


class Owner:
    def __init__(self, mr: Any, nbytes: int) -> None:
        self._held = rmm.DeviceBuffer(size=nbytes, mr=mr)
        self.ptr = self._held.ptr


class Buffer:
    """A slice of an owner, as ``cudf.core.buffer.buffer.Buffer``."""

    def __init__(self, owner: Owner, nbytes: int, offset: int = 0) -> None:
        self.owner, self.size, self._offset = owner, nbytes, offset

    @property
    def ptr(self) -> int:
        raise AssertionError("ptr of a buffer that is written copies what is shared")


class PlcColumn:
    def __init__(self, data: Any, mask: Any = None, children: tuple[Any, ...] = ()) -> None:
        self._parts = data, mask, children

    def data(self) -> Any:
        return self._parts[0]

    def null_mask(self) -> Any:
        return self._parts[1]

    def children(self) -> list[Any]:
        return list(self._parts[2])


def play_cudf(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Put the modules of a cuDF in place whose columns ask for access as 26.10's do."""
    column = types.ModuleType("cudf.core.column.column")
    utils = types.ModuleType("cudf.core.column.utils")

    class ColumnBase:
        def __init__(self, plc_column: Any) -> None:
            self.plc_column = plc_column

        def access(self, **_how: Any) -> Any:
            return nullcontext(self)

    def flatten(objects: tuple[Any, ...], stack: ExitStack, how: dict[str, Any]) -> Iterator[Any]:
        for each in objects:
            if hasattr(each, "access"):
                yield stack.enter_context(each.access(**how))
            elif isinstance(each, Iterable) and not isinstance(each, str | bytes):
                yield from utils._flatten_and_access(tuple(each), stack, how)
            else:
                yield each

    column.ColumnBase = ColumnBase  # type: ignore[attr-defined]
    utils._flatten_and_access = flatten  # type: ignore[attr-defined]
    pylibcudf = types.ModuleType("pylibcudf")
    pylibcudf.utils = types.SimpleNamespace(CUDF_DEFAULT_STREAM=None)  # type: ignore[attr-defined]
    for module in (column, utils, pylibcudf):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return column


@pytest.fixture
def mr() -> Any:
    return rmm_uvm.managed_pool(
        driver="simulated:128MiB", device_budget="16MiB", maximum_pool_size="64MiB"
    )


@pytest.fixture
def cudf(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    return play_cudf(monkeypatch)


@pytest.fixture
def watched(mr: Any) -> Iterator[Callable[[], Any]]:
    """Statistics of the pool, while cuDF's accesses are observed."""
    end = observe([mr.managed_mr.residency])
    yield mr.managed_mr.residency.residency
    end()


def column_of(cudf: types.ModuleType, mr: Any, nbytes: int) -> Any:
    return cudf.ColumnBase(PlcColumn(Buffer(Owner(mr, nbytes), nbytes)))


def access_all(*objects: Any) -> list[Any]:
    with ExitStack() as stack:
        flatten = sys.modules["cudf.core.column.utils"]._flatten_and_access
        return list(flatten(objects, stack, {"mode": "read"}))


def test_access_to_a_column_that_is_away_brings_it_in(cudf: Any, mr: Any, watched: Any) -> None:
    columns = [column_of(cudf, mr, 6 * MIB) for _ in range(4)]
    with columns[0].access(mode="read"):
        pass
    assert watched()["wanted_bytes"] == 6 * MIB
    assert watched()["fetched_bytes"] == 6 * MIB


def test_access_while_all_is_present_announces_nothing(cudf: Any, mr: Any, watched: Any) -> None:
    column = column_of(cudf, mr, 6 * MIB)
    with column.access(mode="read"):
        pass
    assert watched()["wanted_bytes"] == 0


def test_columns_asked_for_together_stay_for_one_another(cudf: Any, mr: Any, watched: Any) -> None:
    columns = [column_of(cudf, mr, 4 * MIB) for _ in range(8)]
    asked = columns[:3]  # 12 MiB of a budget of 16
    assert access_all(iter(asked), 7, "text") == [*asked, 7, "text"]
    after = watched()
    assert after["wanted_bytes"] == 12 * MIB
    access_all(*asked)
    assert watched()["present_bytes"] - after["present_bytes"] == 12 * MIB


def test_masks_children_and_slices_are_announced_with_their_own_bytes(
    cudf: Any, mr: Any, watched: Any
) -> None:
    held = [column_of(cudf, mr, 6 * MIB) for _ in range(3)]
    owner = Owner(mr, 4 * MIB)
    child = PlcColumn(Buffer(owner, 2 * MIB, 2 * MIB), Buffer(Owner(mr, 2 * MIB), 2 * MIB))
    column = cudf.ColumnBase(PlcColumn(None, None, (child,)))
    with column.access(mode="read"):
        pass
    assert watched()["wanted_bytes"] == 4 * MIB
    assert len(held) == 3


def test_buffers_of_other_memory_and_spilled_ones_are_passed_over(
    cudf: Any, mr: Any, watched: Any
) -> None:
    held = [column_of(cudf, mr, 6 * MIB) for _ in range(4)]
    foreign = types.SimpleNamespace(ptr=4096, size=MIB)
    spilled = types.SimpleNamespace(memory_info=lambda: (held[0].plc_column, 5, "cpu"))
    with cudf.ColumnBase(PlcColumn(foreign, spilled)).access(mode="read"):
        pass
    assert watched()["wanted_bytes"] == 0


def test_ended_observation_leaves_cudf_as_it_was(cudf: Any, mr: Any) -> None:
    utils = sys.modules["cudf.core.column.utils"]
    before = cudf.ColumnBase.access, utils._flatten_and_access
    end = observe([mr.managed_mr.residency])
    assert (cudf.ColumnBase.access, utils._flatten_and_access) != before
    end()
    assert (cudf.ColumnBase.access, utils._flatten_and_access) == before


def test_ended_observation_under_another_one_stays_quiet(cudf: Any, mr: Any) -> None:
    first = observe([mr.managed_mr.residency])
    second = observe([mr.managed_mr.residency])
    first()
    columns = [column_of(cudf, mr, 6 * MIB) for _ in range(4)]
    with columns[0].access(mode="read"):
        pass
    assert mr.managed_mr.residency.residency()["wanted_bytes"] == 6 * MIB
    second()


def test_cudf_of_another_make_is_left_alone_and_said_once(
    monkeypatch: pytest.MonkeyPatch, mr: Any
) -> None:
    column = play_cudf(monkeypatch)
    del column.ColumnBase.access
    with pytest.warns(MonitorWarning, match=r"rmm_uvm\.touch"):
        observe([mr.managed_mr.residency])()


def test_columns_of_another_make_are_said_once(cudf: Any, mr: Any) -> None:
    end = observe([mr.managed_mr.residency])
    held = [column_of(cudf, mr, 6 * MIB) for _ in range(4)]
    odd = cudf.ColumnBase(object())
    with pytest.warns(MonitorWarning, match="cannot be seen"):
        odd.access(mode="read")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        odd.access(mode="read")
        held[0].access(mode="read")
    assert mr.managed_mr.residency.residency()["wanted_bytes"] == 0
    end()


@pytest.mark.parametrize("part", ["raises", "is negative", "is no number"])
def test_columns_that_cannot_be_read_do_not_fail_the_operation(
    cudf: Any, mr: Any, part: str
) -> None:
    class Odd:
        size = -1 if part == "is negative" else MIB
        ptr = None if part == "is no number" else 4096

        def __getattribute__(self, name: str) -> Any:
            if name == "ptr" and part == "raises":
                raise RuntimeError("of another make")
            return object.__getattribute__(self, name)

    end = observe([mr.managed_mr.residency])
    held = [column_of(cudf, mr, 6 * MIB) for _ in range(4)]
    odd = cudf.ColumnBase(PlcColumn(Odd()))
    with pytest.warns(MonitorWarning, match="cannot be seen"):
        assert access_all(odd, held[0]) == [odd, held[0]]
    assert mr.managed_mr.residency.residency()["wanted_bytes"] == 0
    end()


def test_cudf_whose_stream_is_none_of_ours_can_be_imported(cudf: Any, mr: Any) -> None:
    sys.modules["pylibcudf"].utils.CUDF_DEFAULT_STREAM = object()  # type: ignore[attr-defined]
    before = cudf.ColumnBase.access
    with pytest.warns(MonitorWarning, match="no CUDA stream"):
        observe([mr.managed_mr.residency])()
    assert cudf.ColumnBase.access is before


def test_error_of_cudf_within_an_access_comes_through(cudf: Any, mr: Any, watched: Any) -> None:
    columns = [column_of(cudf, mr, 6 * MIB) for _ in range(4)]

    def failing() -> Iterator[Any]:
        yield columns[0]
        raise KeyError("of the program")

    with pytest.raises(KeyError, match="of the program"):
        access_all(failing())
    with columns[1].access(mode="read"):
        pass
    assert watched()["wanted_bytes"] == 6 * MIB


def test_wiring_without_cudf_says_so(mr: Any) -> None:
    wiring = wire_accesses([mr.managed_mr.residency])
    assert not wiring.active
    assert wiring.reason == "cuDF is not installed"

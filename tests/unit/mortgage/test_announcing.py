# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An engine that announces what it reads: what, when, and that results are the same."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from rmm_uvm.errors import DataError
from rmm_uvm.mortgage.engines import make_engine
from rmm_uvm.mortgage.engines.announcing import COMPUTING, announcing

LEFT = pd.DataFrame({"key": [1, 2, 2], "value": [1.0, 2.0, 3.0]})
RIGHT = pd.DataFrame({"key": [1, 2], "other": [10.0, 20.0]})


@pytest.fixture
def announced() -> list[Any]:
    return []


@pytest.fixture
def engine(announced: list[Any]) -> Any:
    return announcing(make_engine("pandas"), announced.append)


def test_tables_announce_their_frames_before_they_compute(
    engine: Any, announced: list[Any]
) -> None:
    joined = engine.left_join(LEFT, RIGHT, ["key"])
    assert [id(one) for one in announced] == [id(LEFT), id(RIGHT)]
    assert sorted(joined["other"]) == [10.0, 20.0, 20.0]
    announced.clear()
    engine.concat([LEFT, RIGHT])
    assert [id(one) for one in announced] == [id(LEFT), id(RIGHT)]


def test_columns_announce_their_memory(engine: Any, announced: list[Any]) -> None:
    summed = engine._arithmetic("add", LEFT["value"], LEFT["key"])
    assert [one.name for one in announced] == ["value", "key"]
    assert list(summed) == [2.0, 4.0, 5.0]


def test_what_only_passes_memory_on_announces_nothing(engine: Any, announced: list[Any]) -> None:
    assert engine.height(engine.select(LEFT, ["key"])) == 3
    assert announced == []


def test_memory_that_is_nobodys_is_passed_over() -> None:
    def refuse(_thing: Any) -> None:
        raise DataError("foreign")

    engine = announcing(make_engine("pandas"), refuse)
    assert len(engine.concat([LEFT, LEFT])) == 6


def test_another_error_is_not_hidden() -> None:
    def fail(_thing: Any) -> None:
        raise RuntimeError("broken")

    engine = announcing(make_engine("pandas"), fail)
    with pytest.raises(RuntimeError, match="broken"):
        engine.concat([LEFT, LEFT])


@pytest.mark.parametrize("name", COMPUTING)
def test_every_computing_operation_is_one_of_the_engine(name: str) -> None:
    assert callable(getattr(make_engine("pandas"), name))

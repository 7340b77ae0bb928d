# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every published table: orders right, figures met or explained, results as committed."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .places import RESULTS, SCRIPTS

Script = Callable[[str], ModuleType]
NAMES = tuple(sorted(path.stem for path in (SCRIPTS / "data").glob("*.json")))


@pytest.fixture(scope="module", params=NAMES)
def table(request: pytest.FixtureRequest, script: Script) -> Any:
    """Run a table as its script does."""
    return script(request.param).table()


def test_every_table_with_published_figures_is_run_by_all(script: Script) -> None:
    assert sorted(script("all").NAMES) == list(NAMES)


# Orders that are not the published ones, and say why. The list may only get shorter.
OTHER_ORDERS = {
    ("uvm_smart", "bfs: less memory"),
    ("gtx1080ti_nvprof", "hotspot: bytes to the device with less memory"),
    ("gpu_ext_pages", "advice at 0.25 x"),
}


def test_orders_of_a_table_are_the_published_ones_but_those_on_record(table: Any) -> None:
    others = {(table.name, order.claim) for order in table.orders if not order.right}

    assert others == {one for one in OTHER_ORDERS if one[0] == table.name}
    assert [order.claim for order in table.orders if order.verdict == "wrong"] == []
    assert table.orders


def test_figures_of_a_table_are_within_15_percent_or_explained(table: Any) -> None:
    assert [(row.case, row.quantity) for row in table.rows if row.verdict == "missed"] == []
    assert table.rows


def test_result_of_a_table_is_what_is_committed(table: Any) -> None:
    committed = json.loads((RESULTS / f"{table.name}.json").read_text())

    assert committed["table"] == json.loads(json.dumps(table.to_json())), (
        "run: python benchmarks/published/all.py --write"
    )


def test_machine_of_a_table_is_labelled(table: Any) -> None:
    assert "published only" in table.machine


@pytest.mark.parametrize("name", NAMES)
def test_published_figures_name_their_source(name: str) -> None:
    data = json.loads((SCRIPTS / "data" / f"{name}.json").read_text())

    assert data["source"]
    assert data["title"]

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


WHOLE_NETWORKS = {"g10_networks", "gcn_epochs"}  # simulated for seconds


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.nightly) if name in WHOLE_NETWORKS else name
        for name in NAMES
    ],
)
def table(request: pytest.FixtureRequest, script: Script) -> Any:
    """Run a table as its script does."""
    return script(request.param).table()


def test_every_table_with_published_figures_is_run_by_all(script: Script) -> None:
    assert sorted(script("all").NAMES) == list(NAMES)


# Orders that are not the published ones, and say why. The list may only get shorter.
OTHER_ORDERS = {
    ("uvm_smart", "bfs: less memory"),
    ("gtx1080ti_nvprof", "hotspot: bytes to the device with less memory"),
}

# What is no evidence: ours is made of the published figure, or could be nothing else. Figures and
# orders of each table; the numbers may only rise.
BY_CONSTRUCTION = {
    "uvm_smart": (4, 0),  # time on demand where all fits: it says how long computing takes
    "uvm_discard": (14, 0),  # 0 %: the same, the input, and nothing that leaves
    "specasync_sparse": (4, 0),  # nothing leaves where all fits
    "nvshare_tenants": (1, 0),  # turns longer than a job: the times alone, added up
    "gtc_batch_sizes": (0, 10),  # no step is faster than its computing
}


def test_orders_of_a_table_are_the_published_ones_but_those_on_record(table: Any) -> None:
    others = {(table.name, order.claim) for order in table.orders if not order.right}

    assert others == {one for one in OTHER_ORDERS if one[0] == table.name}
    assert [order.claim for order in table.orders if order.verdict == "wrong"] == []
    assert table.orders


def test_figures_by_construction_are_counted_apart(table: Any) -> None:
    expected = BY_CONSTRUCTION.get(table.name, (0, 0))
    verdicts = table.verdicts

    assert (verdicts["by construction"], verdicts["orders by construction"]) == expected
    evidence = [row for row in table.rows if row.verdict != "by construction"]
    assert len(evidence) == len(table.rows) - expected[0]
    assert not [row for row in evidence if row.theirs == 0]


def test_time_that_computing_fills_up_is_by_construction(script: Script) -> None:
    rows = {row.case: row for row in script("uvm_smart").table().rows if row.quantity == "time"}
    for program in ("backprop", "bfs", "hotspot", "fdtd"):
        assert rows[f"{program}: fits, on demand 4 KiB"].verdict == "by construction"
        assert rows[f"{program}: fits, tree neighbourhood"].verdict == "within 15 %"


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

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What harvesting costs an owner: the benchmark on a simulated pair, and its verdicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .residency_scripts import script

interference = script("neighbors/interference")
GOOD_ROW = {"job": "matrix", "slowdown, neighbour first": 1.02, "neighbor_bytes": 1}
GOOD_RECLAIM = {
    **{"harvested_bytes": 64 << 20, "left_bytes": 64 << 20, "wrong_words": 0, "failed_calls": 0},
    **{"freed_bytes_per_second": 0.9, "host_bytes_per_second": 1.0},
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    where = tmp_path_factory.mktemp("interference") / "interference.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RMM_UVM_DRIVER", "simulated")
        assert interference.main(["--json", str(where), "--simulated"]) == 0
    return json.loads(where.read_text())  # type: ignore[no-any-return]


def test_simulated_owner_has_its_memory_back_and_is_not_slowed_down(
    result: dict[str, Any],
) -> None:
    assert [row["job"] for row in result["interference"]] == list(interference.JOBS)
    assert result["reclaim"]["reclaims"] >= 1
    assert result["reclaim"]["given_back_bytes"] >= result["reclaim"]["left_bytes"] > 0


def test_rate_of_a_simulated_reclaim_is_not_judged(result: dict[str, Any]) -> None:
    assert result["reclaim"]["host_bytes_per_second"] is None
    assert "freed, of the rate to the host" not in result["verdicts"]


def verdicts(row: dict[str, Any], reclaim: dict[str, Any]) -> dict[str, Any]:
    return interference.verdicts(  # type: ignore[no-any-return]
        {"interference": [{**GOOD_ROW, **row}], "reclaim": {**GOOD_RECLAIM, **reclaim}}
    )


def test_verdicts_are_reached_where_figures_are_good() -> None:
    assert interference.harness.exit_status(verdicts({}, {})) == 0


@pytest.mark.parametrize(
    ("row", "reclaim"),
    [
        ({"slowdown, neighbour first": 1.04}, {}),
        ({"neighbor_bytes": 0}, {}),
        ({}, {"left_bytes": 32 << 20}),
        ({}, {"harvested_bytes": 0, "left_bytes": 0}),
        ({}, {"wrong_words": 1}),
        ({}, {"failed_calls": 1}),
        ({}, {"freed_bytes_per_second": 0.7}),
    ],
)
def test_verdict_that_is_missed_is_told(row: dict[str, Any], reclaim: dict[str, Any]) -> None:
    assert interference.harness.exit_status(verdicts(row, reclaim)) == 1

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ways to a neighbour: the benchmark on a simulated pair, the choice of a piece, its verdicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .residency_scripts import script

paths = script("neighbors/paths")
pair_module = script("neighbors/pair")
MIB = 1 << 20


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    where = tmp_path_factory.mktemp("paths") / "paths.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RMM_UVM_DRIVER", "simulated")
        assert paths.main(["--json", str(where), "--simulated"]) == 0
    return json.loads(where.read_text())  # type: ignore[no-any-return]


def row(piece: int, beside: str, rate: float, slow: float | None = None) -> dict[str, Any]:
    return {
        **{"piece_bytes": piece, "place": "neighbor", "way": "prefetch", "beside": beside},
        **{"evict_bytes_per_second": rate, "fetch_bytes_per_second": rate},
        "neighbor_slowdown": slow,
    }


def test_curve_has_every_piece_size_and_place(result: dict[str, Any]) -> None:
    found = {(one["piece_bytes"], one["place"]) for one in result["rows"]}
    assert found == {(piece, place) for piece in paths.PIECES for place in paths.PLACES}


def test_simulated_pair_sends_half_to_the_neighbour_and_says_what_it_cannot(
    result: dict[str, Any],
) -> None:
    assert result["parallel"]["budget_neighbor_share"] == 0.5
    assert result["staged"]["skipped"]
    assert result["multipath"]["staged_bytes"] == 0  # past libcuda only
    assert result["multipath"]["over both links"] > 0
    assert all(one["failed_calls"] == 0 for one in result["ours"])
    free = result["neighbor_free_bytes"]
    assert free["before"] - free["held"] == free["bytes"]
    assert free["freed"] == free["before"]


def test_chosen_piece_is_the_fastest_of_those_that_disturb_little() -> None:
    rows = [
        *(row(2 * MIB, "idle", 100.0), row(2 * MIB, "matrix", 90.0, 1.0)),
        *(row(8 * MIB, "idle", 150.0), row(8 * MIB, "matrix", 90.0, 1.02)),
        *(row(32 * MIB, "idle", 200.0), row(32 * MIB, "stream", 90.0, 1.2)),
    ]
    assert paths.chosen_piece(rows) == 8 * MIB


def test_chosen_piece_where_all_disturb_is_that_which_disturbs_least() -> None:
    rows = [
        *(row(2 * MIB, "idle", 100.0), row(2 * MIB, "matrix", 90.0, 1.05)),
        *(row(8 * MIB, "idle", 150.0), row(8 * MIB, "matrix", 90.0, 1.5)),
    ]
    assert paths.chosen_piece(rows) == 2 * MIB


def test_verdicts_of_a_part_are_those_that_are_there(result: dict[str, Any]) -> None:
    assert paths.verdicts({"rows": result["rows"]}) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"parallel": {"in turn": 1.1, "budget": 1.0}},
        {"intact": False},
    ],
)
def test_verdict_that_is_missed_is_told(result: dict[str, Any], change: dict[str, Any]) -> None:
    found = paths.verdicts({**result, **change})
    assert paths.harness.exit_status(found) == 1


def test_budget_that_is_slow_misses_its_bound(result: dict[str, Any]) -> None:
    slow = [{**one, "evict_bytes_per_second": 1.0} for one in result["ours"]]
    assert paths.harness.exit_status(paths.verdicts({**result, "ours": slow})) == 1


class StagingPair:
    """Counts bytes by place, and lets everything go everywhere."""

    ways = ("prefetch",)
    stages = ""

    def __init__(self) -> None:
        self.moved: list[tuple[int, str]] = []

    def move(self, address: int, _nbytes: int, place: str, _way: str) -> None:
        self.moved.append((address, place))

    def wait(self) -> None:
        """Nothing is under way."""

    def now(self) -> float:
        return float(len(self.moved))


def test_staging_takes_each_piece_to_the_neighbour_before_it_comes() -> None:
    pair = StagingPair()
    found = paths.staged(pair, 0, 8 * MIB, 2 * MIB, rounds=1)
    assert set(found) == {"directly", "through the neighbour", "both", "piece_bytes", "bytes"}
    for number, (address, place) in enumerate(pair.moved):
        if place == "neighbor":
            assert (address, "device") in pair.moved[number:]
    assert sum(place == "neighbor" for _, place in pair.moved) == 2 * (4 + 2)


def test_error_of_a_job_at_once_is_raised() -> None:
    def fails() -> None:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        pair_module.at_once([fails, lambda: None])()

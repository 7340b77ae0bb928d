# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is a result past the edge, and what is none: each rule with a row that breaks it."""

from __future__ import annotations

import copy
import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from .scripts import REPOSITORY, script

verdicts = script("benchmarks", "common/past_the_edge/verdicts")
document = script("benchmarks", "common/past_the_edge/document")
sides = script("benchmarks", "common/past_the_edge/sides")

BUDGET = 1 << 30
OURS = {"name": "default", "budgeted": True, "fault_driven": False}
THEIRS = {"name": "fault-driven", "budgeted": True, "fault_driven": True}
RESIDENT = {"name": "resident", "budgeted": False, "fault_driven": False}


def part(of_budget: float) -> int:
    return int(of_budget * BUDGET)


def a_run(side: str, repetition: int, seconds: float, beyond: float = 0.0) -> dict[str, Any]:
    """Return a timed run's row, as `measure` makes it."""
    told = [
        {"seconds": 9.0 if number < 3 else seconds, "to_device_bytes": BUDGET, "checksum": 40}
        for number in range(7)
    ]
    return {
        "side": side,
        "repetition": repetition,
        "begun": 1000.0 * repetition,
        "rounds": told,
        "moved_at": {f"5.{repetition}": [4 * BUDGET, 5 * BUDGET]},
        "page_tables": {
            "most_bytes": part(beyond),
            "most_bytes_seen": part(beyond),
            "average_bytes": part(beyond / 3),
            "live_peak_bytes": part(1.5),
        },
        "beside_bytes": 0,
        "beside_unknown": "",
    }


def a_twin(side: str, repetition: int, beyond: float = 0.0) -> dict[str, Any]:
    """Return a twin's row."""
    return {
        "side": side,
        "repetition": repetition,
        "moment": [5, repetition],
        "stop": {
            "moved_bytes": [4 * BUDGET, 5 * BUDGET],
            "live_resident_bytes": part(1 + beyond),
            "dead_resident_bytes": 0,
            "live_resident_by_page_tables_bytes": part(1 + beyond),
        },
    }


class Rows:
    """Five good repetitions of three sides, to be spoilt."""

    def __init__(self) -> None:
        seconds = {"default": 1.0, "fault-driven": 2.0, "resident": 0.5}
        self.runs = [
            a_run(name, number, each) for number in range(5) for name, each in seconds.items()
        ]
        self.watched: list[dict[str, Any]] = []
        self.twins = [a_twin(name, number) for number in range(5) for name in list(seconds)[:2]]

    def of(self, kind: str, side: str = "default") -> list[dict[str, Any]]:
        return [row for row in getattr(self, kind) if row["side"] == side]

    def told(self) -> dict[str, Any]:
        pairs = [("default", "fault-driven"), ("default", "resident")]
        sides = [OURS, THEIRS, RESIDENT]
        made = document.rows_of(sides, self.runs, self.watched, self.twins, pairs, BUDGET)
        json.dumps(made)
        return dict(made)

    def ratio(self) -> dict[str, Any]:
        return dict(self.told()["ratios"][0])

    def watch(self) -> None:
        """Have a sampler beside other runs than the timed ones."""
        unseen = {"most_bytes": None, "most_bytes_seen": None, "average_bytes": None}
        for run in self.runs:
            if run["side"] != "resident":
                self.watched.append(copy.deepcopy(run) | {"watched": True})
            run["page_tables"] = {**unseen, "live_peak_bytes": None}


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_good_rows_are_a_result(rows: Rows) -> None:
    told = rows.told()

    ratio, of_resident = told["ratios"]
    assert (ratio["result"], ratio["reasons"], ratio["said"]) == (True, [], [])
    assert (ratio["seconds_ratio"], ratio["factor"]) == (0.5, 1.5)
    assert (of_resident["result"], of_resident["seconds_ratio"]) == (True, 2.0)
    assert script("benchmarks", "common/past_the_edge").is_result(ratio)


@pytest.mark.parametrize(("taken", "result"), [(0.0, True), (0.019, True), (0.021, False)])
def test_what_people_use_instead_is_judged_by_free_memory(taken: float, result: bool) -> None:
    instead = sides.SIDES["by-hand"].as_row()
    runs = [a_run("by-hand", number, 1.0) for number in range(5)]
    watched = [a_run("by-hand", 0, 1.5, beyond=taken) | {"watched": True}]

    told = verdicts.side_row(instead, runs, watched, [], BUDGET)

    assert told["result"] is result
    assert told["beyond"] == {"device": {"most_bytes": part(taken)}}
    kept = {**told, "beyond": {"by-hand": {"counts": "most", **told["beyond"]}}}
    again = verdicts.verdict_of({**kept, "budget_bytes": BUDGET, "result": True, "reasons": []})
    assert again.result is result
    assert "device" in document.lines({"sides": [told], "ratios": []})[0]
    assert verdicts.side_row(instead, runs, [], [], BUDGET)["reasons"] == [
        "nobody looked at its device memory"
    ]


@pytest.mark.parametrize("beyond", [0.03, 0.021])
def test_side_that_leaks_is_no_result(rows: Rows, beyond: float) -> None:
    rows.of("runs")[3]["page_tables"]["most_bytes"] = part(beyond)

    ratio = rows.ratio()

    assert not ratio["result"]
    assert len(ratio["reasons"]) == 1
    assert "of the budget lay beyond it, by the page tables" in ratio["reasons"][0]
    assert not verdicts.is_result(ratio)


def test_side_that_leaks_less_is_one(rows: Rows) -> None:
    rows.of("runs")[3]["page_tables"]["most_bytes"] = part(0.019)

    assert rows.ratio()["result"]


def test_leak_at_one_stop_is_enough(rows: Rows) -> None:
    rows.of("twins")[2]["stop"]["live_resident_bytes"] = part(1.03)

    assert rows.ratio()["reasons"] == [
        "default: 3.0% of the budget lay beyond it, by the driver's counter: at most 2% may"
    ]


def test_other_side_of_a_ratio_must_not_leak_either(rows: Rows) -> None:
    for twin in rows.of("twins", "fault-driven"):
        twin["stop"]["dead_resident_bytes"] = part(0.03)

    told = rows.told()

    assert [ratio["result"] for ratio in told["ratios"]] == [False, True]
    assert told["ratios"][0]["reasons"][0].startswith("fault-driven: 3.0%")


def test_average_counts_where_memory_comes_by_faults(rows: Rows) -> None:
    for run in rows.of("runs", "fault-driven"):
        run["page_tables"] |= {"most_bytes": part(0.2), "average_bytes": part(0.019)}
    rows.of("twins", "fault-driven")[1]["stop"]["live_resident_bytes"] = part(1.09)
    assert rows.ratio()["result"]

    rows.of("runs", "fault-driven")[0]["page_tables"]["average_bytes"] = part(0.03)
    assert not rows.ratio()["result"]


def test_most_counts_where_it_does_not(rows: Rows) -> None:
    for run in rows.of("runs"):
        run["page_tables"] |= {"most_bytes": part(0.2), "average_bytes": 0}

    assert not rows.ratio()["result"]


def test_twin_that_moved_more_does_not_count_and_neither_does_its_run(rows: Rows) -> None:
    moved = rows.of("twins")[0]["stop"]["moved_bytes"]
    moved[0] = int(moved[0] * 1.06)

    ratio = rows.ratio()

    assert not ratio["result"]
    assert ratio["reasons"] == [
        "default: 4 stops count, of at least 5",
        "default: 4 repetitions count, of at least 5",
        "4 pairs count, of at least 5",
    ]
    assert ratio["said"] == [
        "default: 1 of 5 runs moved other bytes than their twins: neither counts"
    ]


def test_twin_that_moved_a_little_more_counts(rows: Rows) -> None:
    for twin in rows.of("twins"):
        twin["stop"]["moved_bytes"] = [int(4.1 * BUDGET), int(4.9 * BUDGET)]

    assert rows.ratio()["result"]


def test_sixth_repetition_makes_up_for_one_that_does_not_count(rows: Rows) -> None:
    for name in ("default", "fault-driven", "resident"):
        rows.runs.append(a_run(name, 5, 1.0))
        rows.twins += [a_twin(name, 5)] if name != "resident" else []
    rows.of("twins")[0]["stop"]["moved_bytes"] = [0, 0]

    assert rows.ratio()["result"]


def test_checksums_of_both_sides_must_be_equal(rows: Rows) -> None:
    for run in rows.of("runs"):
        run["rounds"][6]["checksum"] = 41

    assert rows.ratio()["reasons"] == ["the checksums of both sides differ"]


def test_side_of_which_no_run_counts_has_no_checksums_that_could_differ(rows: Rows) -> None:
    for twin in rows.of("twins"):
        twin["stop"]["moved_bytes"] = [0, 0]

    reasons = rows.ratio()["reasons"]
    assert "default: 0 repetitions count, of at least 5" in reasons
    assert "the checksums of both sides differ" not in reasons


def test_checksums_of_one_side_must_be_equal(rows: Rows) -> None:
    rows.of("runs")[4]["rounds"][0]["checksum"] = 41

    assert rows.ratio()["reasons"] == ["default: checksums of its runs differ"]


def test_four_repetitions_are_too_few(rows: Rows) -> None:
    rows.runs = [run for run in rows.runs if run["repetition"] < 4]
    rows.twins = [twin for twin in rows.twins if twin["repetition"] < 4]

    assert not rows.ratio()["result"]


def test_process_that_failed_is_told_and_does_not_count(rows: Rows) -> None:
    number = rows.runs.index(rows.of("runs")[2])
    rows.runs[number] = {**rows.runs[number], "rounds": [], "failed": "MemoryError"}

    assert "default: 1 processes failed: MemoryError" in rows.ratio()["reasons"]


def test_judge_that_could_not_look_leaves_no_result(rows: Rows) -> None:
    for run in rows.of("runs"):
        run["page_tables"] |= {"most_bytes": None, "average_bytes": None}

    assert rows.ratio()["reasons"] == ["default: the page tables told nothing"]


def test_page_tables_are_looked_at_beside_another_run(rows: Rows) -> None:
    rows.watch()
    for run in rows.of("watched"):
        run["rounds"] = [{**each, "seconds": 7.0} for each in run["rounds"]]

    told = rows.told()

    assert all(ratio["result"] for ratio in told["ratios"])
    assert (told["ratios"][0]["seconds_ratio"], told["ratios"][0]["factor"]) == (0.5, 1.5)
    assert [side["factor"] for side in told["sides"]] == [1.5, 1.5, None]
    assert len(told["watched"]) == 10
    rows.of("watched")[3]["page_tables"]["most_bytes"] = part(0.03)
    assert "of the budget lay beyond it, by the page tables" in rows.ratio()["reasons"][0]


def test_watched_run_that_moved_other_bytes_does_not_count_nor_the_timed_one(
    rows: Rows,
) -> None:
    rows.watch()
    rows.of("watched")[2]["moved_at"]["5.2"][1] //= 2

    ratio = rows.ratio()

    assert "default: 4 repetitions count, of at least 5" in ratio["reasons"]
    assert ratio["said"][0] == (
        "default: 1 of 5 runs moved other bytes than their watched ones: neither counts"
    )


def test_run_that_nobody_watched_does_not_count(rows: Rows) -> None:
    rows.watch()
    del rows.watched[0]

    ratio = rows.ratio()

    assert "default: 4 repetitions count, of at least 5" in ratio["reasons"]
    assert ratio["said"][0] == "default: 1 of 5 runs have no watched one"


def test_seconds_of_runs_that_do_not_count_are_in_no_ratio(rows: Rows) -> None:
    for number in (5, 6, 7, 8):
        for name in ("default", "fault-driven", "resident"):
            rows.runs.append(a_run(name, number, 0.01 if name == "default" else 2.0))
            rows.twins += [a_twin(name, number)] if name != "resident" else []
    for twin in rows.of("twins")[5:]:
        twin["stop"]["moved_bytes"] = [0, 0]

    told = rows.told()

    assert told["sides"][0]["counts_of"] == [0, 1, 2, 3, 4]
    assert told["ratios"][0]["ratios"] == [0.5] * 5
    assert told["ratios"][0]["result"]


def test_watched_run_that_moved_other_bytes_in_a_round_does_not_count(rows: Rows) -> None:
    rows.watch()
    for each in rows.of("watched")[1]["rounds"]:
        each["to_device_bytes"] = int(each["to_device_bytes"] * 1.06)

    assert "default: 4 repetitions count, of at least 5" in rows.ratio()["reasons"]


def test_watched_run_has_to_compute_the_same(rows: Rows) -> None:
    rows.watch()
    rows.of("watched")[2]["rounds"][5]["checksum"] = 41

    assert rows.ratio()["reasons"] == ["default: checksums of its runs differ"]


@pytest.mark.parametrize(("timed", "watched"), [(part(0.03), 0), (0, part(0.03))])
def test_larger_rest_beside_counts(rows: Rows, timed: int, watched: int) -> None:
    rows.watch()
    for kind, nbytes in (("runs", timed), ("watched", watched)):
        for run in rows.of(kind):
            run["beside_bytes"] = nbytes

    reasons = rows.ratio()["reasons"]

    assert any("by the driver's counter" in why for why in reasons)
    if timed:
        assert any("by the page tables" in why for why in reasons)


def test_judges_that_disagree_are_told(rows: Rows) -> None:
    rows.of("twins")[1]["stop"]["live_resident_by_page_tables_bytes"] = part(0.97)

    ratio = rows.ratio()

    assert ratio["result"]
    assert ratio["said"] == ["default: the judges are 3.0% of the budget apart at 5.1"]


def test_device_memory_that_is_not_managed_counts_at_stops(rows: Rows) -> None:
    for run in rows.of("runs"):
        run["beside_bytes"] = part(0.03)

    assert not rows.ratio()["result"]


def test_device_memory_that_cannot_be_told_is_said(rows: Rows) -> None:
    rows.of("runs")[0] |= {"beside_bytes": None, "beside_unknown": "5 bytes are alive"}

    assert rows.ratio()["said"] == [
        "default: device memory that is not managed is not counted: 5 bytes are alive"
    ]


def test_rounds_that_learn_are_kept_and_do_not_count(rows: Rows) -> None:
    told = rows.told()

    assert told["sides"][0]["seconds"] == 1.0
    assert [each["seconds"] for each in told["runs"][0]["rounds"]] == [9.0] * 3 + [1.0] * 4


def test_operations_that_were_timed_have_a_geometric_mean_of_their_own(rows: Rows) -> None:
    assert "operations_ratio" not in rows.ratio()
    times = {"default": [1.0, 8.0], "fault-driven": [2.0, 1.0], "resident": [1.0, 1.0]}
    for run in rows.runs:
        for each in run["rounds"]:
            # The first rounds do not count.
            each["operation_seconds"] = [9.0, 1.0] if each["seconds"] == 9.0 else times[run["side"]]
    rows.of("runs")[3]["rounds"][4]["operation_seconds"] = [70.0, 90.0]  # a median passes it over

    ratio = rows.ratio()

    assert ratio["operations_ratios"] == [2.0] * 5  # of 1/2 and 8
    assert ratio["operations_ratio"] == 2.0
    assert "(2.000 by the geometric mean of operations)" in "\n".join(document.lines(rows.told()))


def test_ratio_is_of_pairs_of_one_repetition(rows: Rows) -> None:
    for drift, (ours, theirs) in enumerate(
        zip(rows.of("runs"), rows.of("runs", "fault-driven"), strict=True), 1
    ):
        for each in (*ours["rounds"][3:], *theirs["rounds"][3:]):
            each["seconds"] *= drift

    assert rows.ratio()["ratios"] == [0.5] * 5


def test_runs_that_were_not_in_turn_are_no_pair(rows: Rows) -> None:
    rows.of("runs")[1]["begun"] += 601

    ratio = rows.ratio()

    assert ratio["reasons"] == ["4 pairs count, of at least 5"]
    assert ratio["said"] == ["1 pairs were not measured in turn, and do not count"]


def test_row_that_was_recorded_as_a_result_is_judged_again(rows: Rows) -> None:
    ratio = copy.deepcopy(rows.ratio())
    ratio["beyond"]["fault-driven"]["stops"]["average_bytes"] = part(0.3)

    assert ratio["result"]
    assert not verdicts.is_result(ratio)
    assert "fault-driven: 30.0%" in verdicts.verdict_of(ratio).reasons[0]


def test_rows_of_sides_are_judged_too(rows: Rows) -> None:
    rows.of("twins")[2]["stop"]["live_resident_bytes"] = part(1.03)

    assert [verdicts.is_result(side) for side in rows.told()["sides"]] == [False, True, True]


def test_row_of_an_older_benchmark_is_refuted_by_its_own_ledger_and_never_confirmed() -> None:
    row: dict[str, Any] = {"factor": 1.5, "seconds": 1.0}
    row["residency"] = {"budget_bytes": BUDGET, "peak_overshoot_bytes": part(0.1)}
    assert "10.0%" in verdicts.verdict_of(row).reasons[0]

    row["residency"]["peak_overshoot_bytes"] = 0
    assert verdicts.verdict_of(row).reasons == ["no judge looked at what lay beyond the budget"]


@pytest.mark.parametrize(
    "row", [{"factor": 0.8}, {"factor": 0.0, "residency": None}, {"seconds": 1}]
)
def test_row_that_is_not_past_the_edge_is_not_judged(row: dict[str, Any]) -> None:
    assert verdicts.is_result(row)


RESULTS = REPOSITORY / "benchmarks" / "results"
COUNTS_ONLY = {"undiscarded"}
"""Of budgets on a GPU too, but no figure of time or of what moved: bytes that were not dropped."""
PROFILES = {"where_time_goes"}
"""What each step's time went to: no ratio, and the document says that nobody judged the memory."""


JUDGED = sorted(RESULTS.glob("past_the_edge_*.json"))


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_committed_rows_past_the_edge_of_a_gpu_are_results(path: Path) -> None:
    kept = json.loads(path.read_text())
    if path.stem in COUNTS_ONLY | PROFILES or kept.get("environment", {}).get("simulated", True):
        return
    rows = kept["rows"] if isinstance(kept.get("rows"), list) else []
    told = [row for row in rows if row.get("factor", 0) > 1]
    assert [row for row in told if not verdicts.is_result(row)] == []


@pytest.mark.parametrize("path", JUDGED, ids=lambda path: path.stem)
def test_committed_ratios_past_the_edge_are_what_they_say_when_judged_again(path: Path) -> None:
    kept = json.loads(path.read_text())
    if path.stem == "past_the_edge_bound":  # a least time by arithmetic: no ratio, no memory
        assert "ratios" not in kept
        return
    assert kept["ratios"]
    for ratio in kept["ratios"]:
        again = verdicts.verdict_of(ratio)
        assert (again.result, again.reasons) == (ratio["result"], ratio["reasons"])
        assert len(ratio["ratios"]) >= (5 if again.result else 0)
        if not ratio["ratios"]:  # of a side that never came to its end
            assert ratio["seconds_ratio"] is None
            continue
        assert ratio["seconds_ratio"] == pytest.approx(statistics.median(ratio["ratios"]), abs=1e-3)
        both = {ratio["of"], ratio["over"]}
        instead = {side.name for side in sides.ALTERNATIVES}  # told since they are looked at
        assert both - instead - {"resident"} <= set(ratio["beyond"]) <= both - {"resident"}


def test_ratio_whose_memory_was_changed_afterwards_would_be_noticed() -> None:
    ratio = json.loads((RESULTS / "past_the_edge_cudf.json").read_text())["ratios"][0]
    assert verdicts.is_result(ratio)
    for told in ratio["beyond"].values():
        told["stops"]["most_bytes"] = told["stops"]["average_bytes"] = ratio["budget_bytes"] // 10
    assert not verdicts.is_result(ratio)

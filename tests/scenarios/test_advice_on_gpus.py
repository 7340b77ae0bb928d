# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Advice where it runs: the benchmark on a simulated device, its verdicts, and what is kept."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm import simulated_device
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import load_machine

from .residency_scripts import script

benchmark = script("planner/advice_on_gpus")
order = script("planner/advice_order")
ways_module = script("planner/advice_ways")
workloads = script("planner/advice_workloads")
document = script("planner/advice_document")
SMALL = ["--driver", "simulated", "--scale", "1", "--iterations", "3", "--rounds", "2"]


def run(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run the benchmark in little; return its status and its file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RMM_UVM_DRIVER", "simulated")
        status = benchmark.main(["--json", str(folder / "result.json"), *SMALL, *words])
    return status, json.loads((folder / "result.json").read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    return run(tmp_path_factory.mktemp("whole"))


def test_five_workloads_reach_every_bound_where_the_model_is_the_machine(
    whole: tuple[int, dict[str, Any]],
) -> None:
    status, result = whole
    assert result["failures"] == []
    assert {row["workload"] for row in result["rows"]} == set(workloads.PROGRAMS)
    assert len(workloads.PROGRAMS) == 5
    assert status == 0, result["verdicts"]
    assert len(result["summaries"]) == 10


def test_rows_have_each_way_of_the_plan_and_one_that_is_advised(
    whole: tuple[int, dict[str, Any]],
) -> None:
    _, result = whole
    for one in result["summaries"]:
        rows = [
            row
            for row in result["rows"]
            if (row["workload"], row["card"]) == (one["workload"], one["card"])
        ]
        names = [row["way"] for row in rows]
        assert names[0] == "default"
        assert [row["way"] for row in rows if row["advised"]] == [one["advised"]]
        if one["card"] == "small":
            assert {"repeat", "lru", "fifo", "correlation", "faults"} < set(names)
            # The budget stands for the card wherever the kernel driver evicts.
            assert all(row["budget_bytes"] <= row["capacity_bytes"] for row in rows)
            assert all(row["to_host_bytes"] > 0 for row in rows)
        else:
            assert {"always", "never"} < set(names)
            assert {row["budget_bytes"] for row in rows} == {None}
            assert {row["to_host_bytes"] for row in rows} == {0}
        for row in rows:
            assert len(row["rounds_seconds"]) == (2 if one["card"] == "small" else 6)
            # Of a deterministic machine there is one figure; predictions lack what touches take.
            assert row["spread"] == 0
            assert row["seconds"] == pytest.approx(
                row["predicted_as_run_seconds"], rel=0.3, abs=2e-3
            )


def test_advice_gains_somewhere_and_ways_differ(whole: tuple[int, dict[str, Any]]) -> None:
    _, result = whole
    assert min(one["advised_over_default"] for one in result["summaries"]) < 0.8
    seconds = {row["way"]: row["seconds"] for row in result["rows"] if row["workload"] == "fir"}
    assert seconds["faults"] > 1.5 * seconds["repeat"]


@pytest.mark.parametrize("name", workloads.PROGRAMS)
def test_advice_for_a_card_that_is_truly_too_small_is_not_slower_there(
    name: str, tmp_path: Path
) -> None:
    places = script("planner/advice_places")
    machine = load_machine("h200-pcie5")

    def program(memory: Any) -> None:
        workloads.PROGRAMS[name](memory, 1, 6)

    places.record(program, {"initial_pool_size": "384MiB"}, tmp_path / "one.trace", machine)
    [card] = rmm_uvm.plan(
        tmp_path / "one.trace", "160MiB", machine=machine, fitting_seconds=0.1, announced=True
    ).cards
    assert card.oversubscription_factor > 1
    keywords = card.settings.keywords()
    device = simulated_device("160MiB")
    with rmm_uvm.reinitialize(driver=device, libraries=(), monitor=False, **keywords):
        pass  # they are accepted as they are
    settings = {"initial_pool_size": "80MiB"} | keywords
    if policy := settings.pop("eviction", None):
        budget_bytes = settings["device_budget"]
        settings["device_budget"] = Budget(budget_bytes, policy=policy, background=False)
        if "initial_pool_size" not in keywords:
            del settings["initial_pool_size"]
    place = places.SimulatedPlace(machine, card.capacity_bytes)
    advised, usual = (
        place.run(program, one).seconds for one in (settings, {"initial_pool_size": "80MiB"})
    )
    assert advised <= 1.02 * usual
    if card.settings.eviction is not None:
        assert advised < 0.99 * usual


def test_workload_that_fails_ends_none_of_the_others_and_the_verdict_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(memory: Any, scale: int, iterations: int) -> None:
        raise MemoryError("no more")

    monkeypatch.setitem(workloads.PROGRAMS, "etl", failing)
    status, result = run(tmp_path, "--workloads", "etl,fir")
    assert status == 1
    assert [one["workload"] for one in result["failures"]] == ["etl"]
    assert "no more" in result["failures"][0]["error"]
    assert {row["workload"] for row in result["rows"]} == {"fir"}
    assert result["verdicts"]["every workload ran on both cards"] is False


def test_workload_that_time_is_over_for_is_told_and_the_verdict_is_missed(tmp_path: Path) -> None:
    status, result = run(tmp_path, "--workloads", "fir,etl", "--most-seconds", "0.001")
    assert status == 1
    assert [one["workload"] for one in result["failures"]] == ["etl"]
    assert {row["workload"] for row in result["rows"]} == {"fir"}


@pytest.mark.parametrize(
    "words", [[], ["--json", "FILE", "--write"], ["--json", "FILE", "--workloads", "sort"]]
)
def test_words_that_say_nothing_to_do_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark.main(words)
    assert ended.value.code == 2


def test_contents_that_are_lost_end_a_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = script("planner/advice_places")
    kept = places.SimulatedPlace.run

    def losing(self: Any, program: Any, settings: Any) -> Any:
        return dataclasses.replace(kept(self, program, settings), wrong_words=7)

    monkeypatch.setattr(places.SimulatedPlace, "run", losing)
    status, result = run(tmp_path, "--workloads", "fir")
    assert status == 1
    assert "7 words were not as written" in result["failures"][0]["error"]


def test_pairs_out_of_order_are_those_that_are_no_tie_on_either_side() -> None:
    predicted = {"a": 1.0, "b": 2.0, "c": 2.05, "only predicted": 9.0}
    assert order.out_of_order(predicted, {"a": 1.0, "b": 3.0, "c": 2.0}) == []
    assert order.out_of_order(predicted, {"a": 2.0, "b": 1.0, "c": 2.05}) == [("a", "b")]
    assert order.out_of_order(predicted, {"a": 1.0, "b": 0.96, "c": 5.0, "other": 0.1}) == []
    assert order.is_tie(1.0, 1.049)
    assert not order.is_tie(1.0, 1.06)


def row(way: str, seconds: float, **others: Any) -> dict[str, Any]:
    given = {
        "workload": "fir",
        "card": "small",
        "way": way,
        "advised": way == "lru",
        "predicted_seconds": 1.0,
        "predicted_as_run_seconds": 1.0,
        "seconds": seconds,
        "over_default": seconds,
        "spread": 0.0,
        "wrong_words": 0,
    }
    return {**given, **others}


def judged(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = order.verdicts(rows, [], ["fir"])
    return found


def test_advice_within_two_percent_is_reached_and_beyond_it_missed() -> None:
    name = "fir, small card: advised / default"
    assert judged([row("default", 1.0), row("lru", 1.02)])[name]["reached"]
    assert not judged([row("default", 1.0), row("lru", 1.03)])[name]["reached"]


def test_order_is_judged_by_the_run_as_made_and_told_for_a_true_card_too() -> None:
    rows = [
        row("default", 1.0, predicted_as_run_seconds=2.0),
        row("lru", 0.5, predicted_seconds=3.0),
    ]
    assert judged(rows)["fir, small card: pairs not in the predicted order"]["reached"]
    [one] = order.summaries(rows)
    assert one["out_of_order_on_a_true_card"] == [("default", "lru")]
    # By the model default takes half on a true card, and what is advised three times as long.
    assert one["advised_over_default_true"] == pytest.approx(0.5 * 3.0 / 0.5)
    turned = [row("default", 1.0), row("lru", 0.5, predicted_as_run_seconds=3.0)]
    assert not judged(turned)["fir, small card: pairs not in the predicted order"]["reached"]


def test_card_that_is_missing_and_words_that_are_wrong_are_missed() -> None:
    found = judged([row("default", 1.0), row("lru", 1.0, wrong_words=1)])
    assert found["every workload ran on both cards"] is False
    assert found["contents as written"] is False


def test_way_of_the_kernel_driver_has_a_budget_that_drops_nothing_and_no_thread() -> None:
    budget = ways_module.driver_of(64 << 20, fetch=True)
    ours = Budget(64 << 20, policy="lru")
    shared = {"prefetch": "auto", "initial_bytes": 1, "maximum_bytes": 2, "sized": False}
    emulated, kept = (
        ways_module.Way("way", budget=one, emulated=one is budget, predicted_seconds=None, **shared)
        for one in (budget, ours)
    )
    assert not emulated.settings(background=True)["device_budget"].background
    assert (budget.policy, budget.discard_dead, budget.ahead) == ("fifo", False, False)
    assert kept.settings(background=True)["device_budget"].background
    assert not kept.settings(background=False)["device_budget"].background


def test_document_of_another_result_is_another(whole: tuple[int, dict[str, Any]]) -> None:
    _, result = whole
    text = document.DOCUMENT.read_text()
    written = document.document_with(text, result)
    assert written != text
    assert written.count("| fir | small |") == 1
    changed = [{**one, "advised_over_default": 9.0} for one in result["summaries"]]
    assert document.document_with(text, {**result, "summaries": changed}) != written


def test_committed_figures_are_of_a_gpu_and_their_verdicts_those_of_the_rows() -> None:
    if not document.RESULT.exists():
        assert document.computed_part(None) in document.DOCUMENT.read_text()
        return
    kept = json.loads(document.RESULT.read_text())
    assert not kept["environment"]["simulated"]
    assert kept["verdicts"] == order.verdicts(
        kept["rows"], kept["failures"], list(workloads.PROGRAMS)
    )
    assert kept["verdicts"]["contents as written"] is True

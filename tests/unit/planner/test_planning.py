# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Plans made of replays that follow a rule: what is replayed, and what follows from it."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmm_uvm.errors import DataError
from rmm_uvm.planner import Plan
from rmm_uvm.planner.advice.advising import ENOUGH
from rmm_uvm.planner.advice.answers import TOLERABLE
from rmm_uvm.planner.planning import plan_workload
from rmm_uvm.planner.request import DEFAULTS, checked_request
from rmm_uvm.planner.trials.capacities import smallest_capacity
from rmm_uvm.planner.trials.runs import PlanProgress, Runs
from rmm_uvm.planner.workload.events import Workload

from .workloads import GIB, MIB, FakeReplay, Machine, etl, event, workload

DEVICE = "device_memory"


def planned(
    recorded: Workload | None = None,
    replay: FakeReplay | None = None,
    machine: Machine | None = None,
    trial: Any = None,
    **asked: Any,
) -> Plan:
    """Return a plan for cards of 8 and 16 GiB, or what else is asked."""
    given: dict[str, Any] = {
        DEVICE: [8 * GIB, 16 * GIB],
        "prefetch": None,
        "driver_prefetch_threshold": [51],
        "policy": ["driver"],
        "workers": 1,
        "host_memory": None,
    }
    return plan_workload(
        recorded or etl(),
        machine or Machine(),
        checked_request(**{**given, **asked}),
        replay=replay or FakeReplay(),
        driver_settings=lambda threshold: threshold,
        trial=trial,
    )


def test_predicted_time_is_the_recorded_one_and_what_migrates_beyond_fitting() -> None:
    plan = planned()
    small, large = plan.cards
    assert large.defaults.predicted_seconds == plan.fitting_seconds == 10.0
    assert small.defaults.predicted_seconds == pytest.approx(10.0 + 2 * 2 * GIB / 1e9)
    assert small.defaults.slowdown == pytest.approx(1 + 4 * GIB / 1e10)
    assert small.oversubscription_factor == pytest.approx(10 / 8)


def test_recording_on_a_device_that_was_too_small_is_not_counted_twice() -> None:
    plan = planned(etl(device_bytes=9 * GIB))
    moved_then = 2 * GIB / 1e9
    assert plan.fitting_seconds == pytest.approx(10.0 - moved_then)
    assert plan.cards[0].defaults.predicted_seconds == pytest.approx(10.0 + moved_then)
    assert any("too small for it" in note for note in plan.notes)


def test_recording_on_a_simulated_device_runs_at_the_speed_of_memory() -> None:
    plan = planned(etl(device_bytes=9 * GIB, device_name="simulated device"))
    assert plan.fitting_seconds == pytest.approx(10 * GIB / 4e12)
    assert plan.cards[0].splitting.verdict == "no"
    assert any("recorded on a simulated device" in note for note in plan.notes)


@pytest.mark.parametrize("name", ["NVIDIA H200", "simulated device"])
def test_time_that_is_given_takes_the_place_of_the_recorded_one(name: str) -> None:
    plan = planned(etl(device_bytes=9 * GIB, device_name=name), fitting_seconds=100.0)
    assert plan.fitting_seconds == 100.0
    assert plan.cards[0].defaults.predicted_seconds == pytest.approx(100.0 + 4 * GIB / 1e9)
    assert "Predicted time is 100 s, as given" in plan.notes[0]
    assert not any("simulated device" in note for note in plan.notes)


def test_modes_are_tried_only_where_data_move() -> None:
    replay = FakeReplay()
    small, large = planned(replay=replay).cards
    assert [one.options.prefetch for one in small.variants] == ["auto", "always", "never"]
    assert [one.options for one in large.variants] == [DEFAULTS]


def test_faster_mode_becomes_the_setting_and_slower_ones_do_not() -> None:
    small, large = planned(replay=FakeReplay({"never": 0.5, "always": 2.0})).cards
    assert small.advised.options.prefetch == small.settings.prefetch == "never"
    assert large.settings.prefetch == "auto"
    slower = planned(replay=FakeReplay({"never": 1.5, "always": 2.0})).cards[0]
    assert slower.advised is slower.defaults


def test_answers_and_budget_are_those_of_the_advised_mode_and_agree_with_the_card() -> None:
    # Half the time of the defaults: at 8 GiB 1.21 times as long, where the defaults take 1.43.
    (faster,) = planned(replay=FakeReplay({"never": 0.5}), **{DEVICE: [8 * GIB]}).cards
    assert faster.defaults.slowdown == pytest.approx(1 + 4 * GIB / 1e10)
    assert faster.splitting.verdict == "yes"
    assert faster.more_data.verdict == "yes"
    (slow,) = planned(**{DEVICE: [8 * GIB]}).cards
    assert slow.splitting.verdict == "at a price"
    assert slow.more_data.verdict == "no"
    (large,) = planned(**{DEVICE: [80 * GIB]}).cards
    assert large.settings.enough_bytes < 10 * GIB


def test_larger_card_is_not_told_to_hold_less_data_than_a_smaller_one() -> None:
    """A way that is advised where data move is what more data on a larger card would take."""
    cards = planned(
        replay=FakeReplay({"never": 0.5}), **{DEVICE: [8 * GIB, 16 * GIB, 32 * GIB]}
    ).cards
    most = [
        float(found.group(1))
        for card in cards
        if (found := re.search(r"up to ([\d.]+) times these data", card.more_data.text))
    ]
    assert len(most) == 3
    assert most == pytest.approx([most[0], 2 * most[0], 4 * most[0]], rel=0.02)
    assert all("with prefetch never, up to" in card.more_data.text for card in cards)
    # One that is no faster, and one that cannot be set, change nothing.
    for how in ({"never": 1.0}, {"never": 2.0}):
        plain = planned(replay=FakeReplay(how), **{DEVICE: [16 * GIB]}).cards[0]
        assert "with prefetch" not in plain.more_data.text


def test_way_that_the_pool_rejects_is_no_way_for_more_data() -> None:
    def rejecting(*_: Any) -> float:
        return 1.0

    rejecting.able = True  # type: ignore[attr-defined]
    for trial, told in ((None, True), (rejecting, False)):
        cards = planned(replay=FakeReplay({"never": 0.5}), trial=trial).cards
        assert ["with prefetch never" in card.more_data.text for card in cards] == [told, told]


def test_recording_that_touches_more_than_its_peak_gets_no_sizes_from_the_peak() -> None:
    def rows(apart: int) -> list[tuple[int, ...]]:
        return [
            event(kind, number * apart, GIB, 0.01 * number)
            for number in range(8)
            for kind in ("allocate", "touch", "free")
        ]

    spread = planned(workload(rows(GIB), peak_bytes=GIB))
    assert spread.working_set.nbytes == 8 * GIB
    assert any("More is touched in one window" in note for note in spread.notes)
    assert any("answers rest on replays alone, and pool sizes are left" in n for n in spread.notes)
    assert "initial_pool_size" not in spread.cards[0].settings.keywords()
    assert "touched in one window, 8.00 GiB" in dict(spread.cards[0].settings.reasons)["pool sizes"]
    dense = planned(workload(rows(0), peak_bytes=GIB))
    assert dense.working_set.nbytes == GIB
    assert not any("More is touched" in note for note in dense.notes)
    assert any("pool sizes follow from the peak" in note for note in dense.notes)
    assert "initial_pool_size" in dense.cards[0].settings.keywords()


def test_thresholds_and_policies_are_replayed_on_every_card() -> None:
    plan = planned(
        replay=FakeReplay({5: 0.5}),
        driver_prefetch_threshold=[51, 5],
        policy=["driver", "discard-dead"],
        prefetch=["auto"],
    )
    for card in plan.cards:
        shown = {(v.options.driver_prefetch_threshold, v.options.policy) for v in card.variants}
        assert shown == {
            (51, "driver"), (5, "driver"), (51, "discard-dead"), (5, "discard-dead")
        }  # fmt: skip
    assert plan.cards[0].settings.driver_prefetch_threshold == 5
    assert plan.cards[0].advised.options.policy == "driver"


def test_no_replay_is_done_twice() -> None:
    replay = FakeReplay()
    planned(replay=replay)
    assert len(replay.calls) == len(set(replay.calls)) > 10


def test_enough_and_tolerable_memory_are_where_the_curve_crosses() -> None:
    plan = planned()
    step = Runs(etl(), Machine(), FakeReplay(), int).fitting_device_bytes / 64
    # 1.05 times 10 s are 0.5 s more: 0.25e9 bytes in and out.
    assert 0 <= plan.enough_bytes - (10 * GIB - 0.25e9) <= step
    assert 0 <= plan.tolerable_bytes - (10 * GIB - 1.25e9) <= step


def test_curve_has_all_replays_with_the_defaults_in_order() -> None:
    plan = planned(replay=FakeReplay(runs_out_below_bytes=9 * GIB))
    sizes = [size for size, _ in plan.curve]
    assert sizes == sorted(set(sizes))
    assert {8 * GIB, 16 * GIB} < {*sizes, 16 * GIB}
    assert (8 * GIB, None) in plan.curve


def test_card_that_runs_out_of_memory_is_told_and_not_raised() -> None:
    plan = planned(replay=FakeReplay(runs_out_below_bytes=9 * GIB))
    small, large = plan.cards
    assert small.defaults.predicted_seconds is small.defaults.slowdown is None
    assert small.splitting.verdict == "no"
    assert small.settings.parts == 2
    assert large.defaults.slowdown == 1.0
    assert plan.helps is not None
    assert (plan.helps.from_slowdown, plan.helps.to_slowdown) == (None, 1.0)


def test_workers_take_the_ipc_pool_from_the_card_and_share_the_host() -> None:
    replay = FakeReplay()
    plan = planned(replay=replay, workers=4, host_memory="64GiB")
    small = plan.cards[0]
    assert small.capacity_bytes == 8 * GIB - 256 * MIB
    assert small.settings.ipc_pool_bytes == 256 * MIB
    assert small.host_bytes == 4 * small.defaults.result.host_page_bytes > 0
    # What the others are compared with has room everywhere.
    assert [call[4] for call in replay.calls].count(None) == 1
    assert {call[4] for call in replay.calls} == {None, 16 * GIB}
    alone = planned(workers=1).cards[0]
    assert (alone.capacity_bytes, alone.settings.ipc_pool_bytes) == (8 * GIB, 0)


def test_workload_without_stages_is_told_by_size_of_allocation() -> None:
    plan = planned(etl(stages=("",)))
    names = [stage.name for stage in plan.cards[0].defaults.result.stages]
    assert plan.by_size_class
    assert names[-1] == "1 GiB and more"
    staged = planned()
    assert not staged.by_size_class
    assert [stage.name for stage in staged.cards[0].defaults.result.stages][1:] == ["load", "join"]


def test_sizes_of_allocations_are_told_apart_at_their_bounds() -> None:
    from rmm_uvm.planner.workload.stages import by_size_class

    sizes = [1, MIB - 1, MIB, 16 * MIB, 128 * MIB, GIB - 1, GIB]
    rows = [event("allocate", 0, size, 0.0) for size in sizes]
    classed = by_size_class(workload(rows, peak_bytes=GIB))
    assert classed.events["stage"].tolist() == [0, 0, 1, 2, 3, 3, 4]
    assert len(classed.stages) == 5


def test_cards_by_default_lie_around_the_peak() -> None:
    plan = planned(**{DEVICE: None})
    assert [card.device_bytes >> 30 for card in plan.cards] == [3, 4, 6, 8, 11]


def test_workload_without_allocations_is_refused_in_one_line() -> None:
    empty = workload([], peak_bytes=0, slabs=())
    with pytest.raises(DataError, match=r"etl\.trace has no allocation"):
        planned(empty)


def test_progress_names_what_is_replayed() -> None:
    told: list[PlanProgress] = []
    plan_workload(
        etl(),
        Machine(),
        checked_request([8 * GIB], None, [51], ["driver"], 1, None),
        replay=FakeReplay(),
        driver_settings=int,
        progress=told.append,
    )
    assert [one.replays for one in told] == list(range(1, len(told) + 1))
    assert "8.00 GiB, prefetch never" in [one.what for one in told]


def test_json_has_every_figure_and_no_numpy() -> None:
    plan = planned(replay=FakeReplay(runs_out_below_bytes=9 * GIB))
    told = json.loads(plan.to_json())
    assert told["simulated"] is True
    assert told["machine"]["name"] == "test-machine"
    assert [card["device_bytes"] for card in told["cards"]] == [8 * GIB, 16 * GIB]
    small = told["cards"][0]["variants"][0]
    assert small["defaults"] is True
    assert small["result"]["out_of_memory"] == {"record": 3, "stage": "join", "nbytes": 5 * MIB}
    names = {field.name for field in dataclasses.fields(plan.cards[0].defaults.result)}
    # Nothing went to a third tier.
    assert set(small["result"]) == names - {"to_third_tier_bytes", "from_third_tier_bytes"}
    assert len(small["result"]["timeline"]["live_bytes"]) == 6
    others = [one["result"]["timeline"] for one in told["cards"][0]["variants"][1:]]
    assert others == [None, None]


def test_search_ends_at_a_block_and_finds_nothing_below_a_card_too_small() -> None:
    assert smallest_capacity(lambda size: None, 64 * MIB, 1.25) is None
    assert smallest_capacity(lambda size: 1.3, 64 * MIB, 1.25) is None
    assert smallest_capacity(lambda size: 1.0, 64 * MIB, 1.25, steps=40) == 2 * MIB
    exact = smallest_capacity(
        lambda size: 1.0 if size >= 22 * MIB else 9.0, 64 * MIB, 1.25, steps=40
    )
    assert exact == 22 * MIB


def test_search_beside_known_capacities_contradicts_none_of_them() -> None:
    def uneven(size: int) -> float:
        return 2.0 if size < 8 * MIB or size == 40 * MIB else 1.0

    assert smallest_capacity(uneven, 64 * MIB, 1.25) == 8 * MIB
    found = smallest_capacity(uneven, 64 * MIB, 1.25, known=[6 * MIB, 40 * MIB, 56 * MIB])
    assert found == 42 * MIB
    assert smallest_capacity(uneven, 64 * MIB, 1.25, known=[6 * MIB, 8 * MIB]) == 8 * MIB


def test_host_too_small_for_every_card_is_told_and_no_capacity_is_enough() -> None:
    short = FakeReplay(host_needed_bytes=4 * GIB)
    plan = planned(replay=short, host_memory="2GiB")
    assert plan.enough_bytes is plan.tolerable_bytes is plan.helps is None
    assert [card.defaults.slowdown for card in plan.cards] == [None, None]
    for card in plan.cards:
        assert card.splitting.verdict == card.more_data.verdict == "no"
        assert "no card is enough with 2.00 GiB of host memory" in card.more_data.text
        assert card.settings.enough_bytes == card.capacity_bytes
    assert "takes memory beside it: the host needs more" in plan.cards[1].splitting.text
    enough = planned(replay=short, host_memory="4GiB")
    assert enough.enough_bytes is not None
    assert "no card is enough" not in enough.cards[1].more_data.text
    assert json.loads(plan.to_json())["enough_bytes"] is None


@given(st.integers(1, 20), st.integers(0, 12), st.floats(0.2, 3.0))
@settings(max_examples=30, deadline=None)
def test_any_capacity_that_is_enough_contradicts_no_card(
    card_gib: int, out_below_gib: int, factor: float
) -> None:
    replay = FakeReplay({"never": factor}, runs_out_below_bytes=out_below_gib * GIB)
    plan = planned(replay=replay, **{DEVICE: [card_gib * GIB, (card_gib + 3) * GIB]})
    for card in plan.cards:
        for least, bound in ((plan.enough_bytes, ENOUGH), (plan.tolerable_bytes, TOLERABLE)):
            slow = card.defaults.slowdown
            within = slow is not None and slow <= bound
            assert least is not None
            assert within or card.capacity_bytes < least
            assert not within or least <= card.capacity_bytes

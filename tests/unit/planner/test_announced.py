# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that announce their uses: what is tried for them, and that the fastest way is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.planner import plan
from rmm_uvm.planner.advice.advising import AdviceFacts
from rmm_uvm.planner.advice.announced import Moved, advised_way, tried_ways, with_way
from rmm_uvm.planner.outcome import AnnouncedWay, Settings
from rmm_uvm.planner.trials.pool_trial import PoolTrial
from rmm_uvm.planner.trials.runs import touch_seconds
from rmm_uvm.planner.workload.events import BY_THE_CPU, TOUCH
from rmm_uvm.residency import POLICIES
from rmm_uvm.simulator import DriverSettings, load_machine

from .workloads import MIB, etl, event, workload

CARD_BYTES, PEAK_BYTES = 128 * MIB, 192 * MIB
BUDGET_BYTES = 120 * MIB
SETTINGS = Settings(
    initial_pool_bytes=1,
    maximum_pool_bytes=2,
    prefetch="never",
    ipc_pool_bytes=0,
    host_sharers=1,
    driver_prefetch_threshold=5,
    enough_bytes=CARD_BYTES,
    parts=2,
    reasons=(
        ("prefetch", "replayed"),
        ("enough memory", "all"),
        ("uvm_perf_prefetch_threshold", "5"),
        ("parts", "two"),
    ),
)


def facts(capacity_bytes: int = CARD_BYTES) -> AdviceFacts:
    return AdviceFacts(
        peak_bytes=PEAK_BYTES,
        slab_bytes=PEAK_BYTES,
        capacity_bytes=capacity_bytes,
        ipc_bytes=0,
        workers=1,
        enough_bytes=PEAK_BYTES,
        splits=False,
    )


@dataclass
class FakeTrial:
    """Takes two seconds, or what a policy or mode has; None is out of memory."""

    seconds: Mapping[str | None, float | None] = field(default_factory=dict)
    able: bool = True
    able_announced: bool = True
    unannounced: float | None = 9.0

    def announced(
        self,
        capacity_bytes: int,
        host_bytes: int | None,
        way: AnnouncedWay,
        compute_seconds: float,
        *,
        announces: bool = True,
    ) -> Moved | None:
        seconds = self.seconds.get(way.eviction or way.prefetch, 2.0)
        if not announces:
            seconds = self.unannounced
        return None if seconds is None else Moved(seconds, 3 * MIB, 5 * MIB)


def ways(trial: FakeTrial, capacity_bytes: int = CARD_BYTES) -> tuple[AnnouncedWay, ...]:
    return tried_ways(trial, facts(capacity_bytes), ("auto", "never"), 1.0, 2.0)


def test_advised_way_has_what_it_takes_where_nobody_announces() -> None:
    found = ways(FakeTrial({"repeat": 1.0}))
    assert [one.unannounced_seconds for one in found if one is not advised_way(found)] == [None] * (
        len(found) - 1
    )
    assert advised_way(found).unannounced_seconds == 9.0
    why = dict(with_way(SETTINGS, found).reasons)
    assert why["uses"] == "1.0 s of driver work then, 9.0 s where nobody announces any"
    assert "uses" not in dict(with_way(SETTINGS, ways(FakeTrial({}, able=False))).reasons)
    assert "uses" not in dict(with_way(SETTINGS, ways(FakeTrial({}, unannounced=None))).reasons)


@pytest.mark.parametrize(("unannounced", "warned"), [(9.0, True), (1.02, False)])
def test_never_prefetching_is_advised_with_what_unannounced_uses_cost(
    unannounced: float, warned: bool
) -> None:
    found = ways(FakeTrial({"never": 1.0}, unannounced=unannounced))
    assert advised_way(found).prefetch == "never"
    why = dict(with_way(SETTINGS, found).reasons)["prefetch"]
    assert why.endswith("; what is not announced comes by page faults then, see uses") is warned


def test_times_that_read_alike_are_no_reason_for_a_way() -> None:
    found = ways(FakeTrial({"auto": 2.049, "never": 1.951}, unannounced=1.951))
    why = dict(with_way(SETTINGS, found).reasons)["prefetch"]
    assert why == "uses announced, with the pool itself 5% less driver work than by default"
    found = ways(FakeTrial({"auto": 2.0, "never": 1.5}, unannounced=1.5))
    why = dict(with_way(SETTINGS, found).reasons)["prefetch"]
    assert why.endswith("1.5 s of driver work, against 2.0 s by default")


def test_card_that_is_too_small_is_tried_with_every_policy_in_a_budget_below_it() -> None:
    found = ways(FakeTrial())
    assert (found[0].prefetch, found[0].eviction, found[0].sized) == ("auto", None, False)
    assert {way.eviction for way in found} == {None, *POLICIES}
    assert {way.budget_bytes for way in found if way.eviction} == {BUDGET_BYTES}
    assert {way.initial_bytes for way in found if way.eviction and not way.sized} == {BUDGET_BYTES}
    assert found[-1].sized
    assert found[-1].initial_bytes >= PEAK_BYTES
    assert (found[0].driver_seconds, found[0].predicted_seconds, found[0].slowdown) == (2, 3, 1.5)
    assert (found[0].to_device_bytes, found[0].to_host_bytes) == (3 * MIB, 5 * MIB)


@pytest.mark.parametrize("capacity_bytes", [PEAK_BYTES, 4 * MIB])
def test_card_with_room_or_too_small_for_a_budget_is_tried_without_one(capacity_bytes: int) -> None:
    assert {way.eviction for way in ways(FakeTrial(), capacity_bytes)} == {None}


def test_policy_that_wins_becomes_budget_and_eviction_of_the_settings() -> None:
    found = ways(FakeTrial({"lru": 1.0}))
    settings = with_way(SETTINGS, found)
    keywords = settings.keywords()
    assert (keywords["eviction"], keywords["device_budget"]) == ("lru", BUDGET_BYTES)
    assert keywords["prefetch"] == "auto"
    reasons = dict(settings.reasons)
    assert "1.0 s of driver work, against 2.0 s by default" in reasons["eviction"]
    assert "fifo 2.0 s" in reasons["eviction"]
    assert reasons["device_budget"].startswith("the card, less")
    assert (reasons["enough memory"], settings.enough_bytes) == ("all", CARD_BYTES)
    assert reasons["parts"] == "two"
    assert "uvm_perf_prefetch_threshold" not in reasons
    assert settings.driver_prefetch_threshold is None


def test_policy_that_gains_less_than_three_hundredths_leaves_the_defaults() -> None:
    found = ways(FakeTrial({"lru": 1.92}))
    assert advised_way(found) is found[0]
    assert with_way(SETTINGS, found).keywords() == {"prefetch": "auto"}


def test_mode_that_wins_over_all_policies_is_set_without_a_budget() -> None:
    keywords = with_way(SETTINGS, ways(FakeTrial({"never": 1.0}))).keywords()
    assert keywords["prefetch"] == "never"
    assert "device_budget" not in keywords


def test_way_that_runs_out_of_memory_is_never_advised_and_told() -> None:
    found = ways(FakeTrial({"lru": None, "auto": None, "never": None}))
    assert found[0].predicted_seconds is None
    assert advised_way(found).eviction == "repeat"
    reasons = dict(with_way(SETTINGS, found).reasons)
    assert "lru out of memory" in reasons["eviction"]
    assert "against running out of memory by default" in reasons["eviction"]


def test_nothing_that_runs_leaves_the_defaults() -> None:
    found = ways(FakeTrial(dict.fromkeys(("auto", "never", *POLICIES))))
    assert advised_way(found) is found[0]


def loop() -> list[tuple[int, ...]]:
    """Return six arrays of 32 MiB that are read in turn, four times over."""
    rows = [event("allocate", number * 32 * MIB, 32 * MIB, 0.0) for number in range(6)]
    rows += [
        event("touch", number * 32 * MIB, 32 * MIB, 0.1) for _ in range(8) for number in range(6)
    ]
    return rows + [event("free", number * 32 * MIB, 32 * MIB, 0.2) for number in range(6)]


def trial_of(rows: list[tuple[int, ...]]) -> PoolTrial:
    recorded = workload(rows, peak_bytes=PEAK_BYTES, touches_assumed=False)
    return PoolTrial(recorded, load_machine("h200-pcie5"), lambda _: DriverSettings())


def way(eviction: str | None) -> AnnouncedWay:
    budget_bytes = BUDGET_BYTES if eviction else None
    return AnnouncedWay("auto", eviction, budget_bytes, 256 * MIB, 256 * MIB, sized=True)


def test_policy_that_learns_a_loop_moves_less_than_the_oldest_first() -> None:
    trial = trial_of(loop())
    moved = {name: trial.announced(CARD_BYTES, None, way(name), 0.0) for name in (None, *POLICIES)}
    repeat, fifo, alone = moved["repeat"], moved["fifo"], moved[None]
    assert repeat is not None
    assert fifo is not None
    assert alone is not None
    assert repeat.to_device_bytes < 0.9 * fifo.to_device_bytes
    assert repeat.seconds < fifo.seconds
    assert alone.to_device_bytes > 0


def waited_seconds(eviction: str | None, compute_seconds: float) -> float:
    rows = [(*row[:-1], number * 1000) for number, row in enumerate(loop())]
    moved = trial_of(rows).announced(CARD_BYTES, None, way(eviction), compute_seconds)
    assert moved is not None
    return moved.seconds


def test_kernels_that_compute_hide_what_a_budget_moves_and_nothing_else() -> None:
    assert waited_seconds("repeat", 10.0) < 0.7 * waited_seconds("repeat", 0.0)
    assert waited_seconds(None, 10.0) == pytest.approx(waited_seconds(None, 0.0), rel=1e-6)


def test_kernels_compute_for_as_long_as_was_recorded_after_their_touches() -> None:
    rows = [
        event("allocate", 0, 4 * MIB, 0.0),
        event("touch", 0, MIB, 1.0),
        event("touch", 0, 3 * MIB, 2.0),
        event("free", 0, 4 * MIB, 5.0),
    ]
    recorded = workload(rows, peak_bytes=4 * MIB)
    assert touch_seconds(recorded, 8.0).tolist() == [0, 2, 6, 0]


def test_kernels_compute_by_bytes_where_times_are_those_of_a_simulation() -> None:
    by_cpu = (TOUCH, BY_THE_CPU, *event("touch", 0, MIB, 2.0)[2:])
    rows = [
        event("allocate", 0, 4 * MIB, 0.0),
        event("touch", 0, MIB, 1.0),
        by_cpu,
        event("touch", 0, 3 * MIB, 2.0),
    ]
    recorded = workload(rows, peak_bytes=4 * MIB, device_name="simulated, 1 GiB")
    assert touch_seconds(recorded, 8.0).tolist() == [0, 2, 0, 6]
    assert touch_seconds(workload(rows[:1], peak_bytes=4 * MIB), 8.0).tolist() == [0]


def test_pool_that_is_too_small_is_no_way() -> None:
    small = AnnouncedWay("auto", "lru", BUDGET_BYTES, 32 * MIB, 64 * MIB, sized=True)
    assert trial_of(loop()).announced(CARD_BYTES, None, small, 0.0) is None


def test_plan_tries_budgets_only_for_programs_that_announce() -> None:
    recorded = workload(loop(), peak_bytes=PEAK_BYTES, touches_assumed=False)
    [silent] = plan(recorded, "128MiB").cards
    announced = plan(recorded, "128MiB", announced=True)
    [card] = announced.cards
    assert silent.ways == ()
    assert silent.settings.eviction is None
    assert {one.eviction for one in card.ways} == {None, *POLICIES}
    assert card.settings.eviction == advised_way(card.ways).eviction
    assert announced.to_dict()["cards"][0]["ways"][0]["prefetch"] == "auto"
    assert "announces its uses" in str(announced)
    assert "announces its uses" not in str(plan(recorded, "128MiB"))


def test_recording_that_is_too_long_is_planned_without_ways_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded = etl(PEAK_BYTES)
    for limit in ("MOST_EVENTS", "MOST_ANNOUNCED_EVENTS"):
        monkeypatch.setattr(f"rmm_uvm.planner.trials.pool_trial.{limit}", len(recorded.events) - 1)
    planned = plan(recorded, "128MiB", announced=True)
    assert planned.cards[0].ways == ()
    assert planned.cards[0].settings.eviction is None
    assert any("too long to try budgets" in note for note in planned.notes)


def test_long_recording_is_tried_with_the_default_mode_and_policy_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded = etl(PEAK_BYTES)
    monkeypatch.setattr("rmm_uvm.planner.trials.pool_trial.MOST_EVENTS", len(recorded.events) - 1)
    planned = plan(recorded, "128MiB", announced=True)
    tried = {(way.prefetch, way.eviction) for way in planned.cards[0].ways}
    assert tried == {("auto", None), ("auto", "repeat")}
    assert any("only the default policy was tried" in note for note in planned.notes)
    assert not any("too long to try budgets" in note for note in planned.notes)


def test_announced_that_is_no_truth_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="announced='yes': True or False"):
        plan(etl(), announced="yes")  # type: ignore[arg-type]

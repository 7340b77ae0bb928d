# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is advised, for which reasons, and that it is never what was slower."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.planner.advice.advising import (
    AdviceFacts,
    best,
    default_sizes,
    helps_most,
    parts_needed,
)
from rmm_uvm.planner.advice.reasons import settings as settings_of
from rmm_uvm.planner.advice.settling import Settled, Tried
from rmm_uvm.planner.outcome import Settings, Variant
from rmm_uvm.planner.request import DEFAULTS, Options
from rmm_uvm.planner.workload.result import OutOfMemory
from rmm_uvm.residency import Budget

from .workloads import GIB, FakeReplay, Machine, etl

FACTS = AdviceFacts(
    peak_bytes=10 * GIB,
    slab_bytes=11 * GIB,
    capacity_bytes=16 * GIB,
    ipc_bytes=0,
    workers=1,
    enough_bytes=9 * GIB,
    splits=False,
)


def variant(seconds: float | None, options: Options = DEFAULTS) -> Variant:
    result = FakeReplay()(
        etl(), Machine(), device_bytes=8 * GIB, prefetch="auto", driver=51, policy="driver",
        host_bytes=None, progress=None,
    )  # fmt: skip
    if seconds is None:
        result = dataclasses.replace(result, out_of_memory=OutOfMemory(1, "join", 5))
        return Variant(options, result, None, None)
    return Variant(options, result, seconds, seconds / 10)


def settings(
    facts: AdviceFacts, defaults: Variant, advised: Variant, *, sized: bool = True
) -> Settings:
    """Return the settings that replays alone speak for."""
    return settings_of(facts, defaults, Settled(advised, sized))


def reason(name: str, **changes: int) -> str:
    found = settings(FACTS._replace(**changes), variant(10.0), variant(10.0))
    return dict(found.reasons).get(name, "")


def test_faster_mode_is_advised() -> None:
    faster = variant(12.0, Options("always"))
    assert best([variant(15.0), variant(20.0, Options("never")), faster]) is faster


def test_mode_faster_by_less_than_three_hundredths_is_not_advised() -> None:
    defaults = variant(15.0)
    assert best([defaults, variant(14.6, Options("always"))]) is defaults


def test_policy_that_cannot_be_set_is_not_advised() -> None:
    defaults = variant(15.0)
    assert best([defaults, variant(5.0, Options("auto", 51, "discard-dead"))]) is defaults


def test_defaults_that_run_out_of_memory_give_way_to_what_does_not() -> None:
    slow = variant(100.0, Options("never"))
    assert best([variant(None), slow]) is slow
    alone = [variant(None), variant(None, Options("never"))]
    assert best(alone) is alone[0]


seconds = st.one_of(st.none(), st.floats(0.0, 1e6))


@given(st.lists(seconds, min_size=1, max_size=6))
def test_any_advice_is_never_slower_than_the_defaults(times: list[float | None]) -> None:
    modes = [DEFAULTS, *(Options("always", threshold) for threshold in range(len(times) - 1))]
    variants = [variant(one, options) for one, options in zip(times, modes, strict=True)]
    chosen, defaults = best(variants), variants[0]
    if defaults.predicted_seconds is not None:
        assert chosen.predicted_seconds is not None
        assert chosen.predicted_seconds <= defaults.predicted_seconds
    else:
        assert chosen.predicted_seconds is not None or not any(t is not None for t in times)


def test_pool_begins_with_the_peak_and_a_tenth_where_that_fits() -> None:
    found = settings(FACTS, variant(10.0), variant(10.0))
    assert found.initial_pool_bytes == pytest.approx(11 * GIB, rel=1e-3)
    assert found.initial_pool_bytes % (2 << 20) == 0
    assert found.maximum_pool_bytes == found.initial_pool_bytes + 20 * GIB
    assert "in one slab" in reason("initial_pool_size")


def test_pool_begins_with_the_card_where_the_peak_does_not_fit() -> None:
    found = settings(FACTS._replace(capacity_bytes=8 * GIB), variant(20.0), variant(20.0))
    assert found.initial_pool_bytes == 8 * GIB - (128 << 20)
    assert found.maximum_pool_bytes == found.initial_pool_bytes + 20 * GIB
    assert "grows by what does not fit" in reason("initial_pool_size", capacity_bytes=8 * GIB)


def test_pool_of_a_card_that_just_holds_the_peak_says_that_it_need_not_grow() -> None:
    facts = FACTS._replace(capacity_bytes=int(10.5 * GIB))
    found = settings(facts, variant(10.0), variant(10.0))
    assert 10 * GIB <= found.initial_pool_bytes < 10.5 * GIB
    assert "need not grow" in dict(found.reasons)["initial_pool_size"]


def test_pool_smaller_than_half_the_card_says_that_the_default_fills_it_for_nothing() -> None:
    assert "for nothing" in reason("initial_pool_size", capacity_bytes=80 * GIB)


def test_fragmented_recording_raises_the_maximum_to_its_slabs() -> None:
    found = settings(FACTS._replace(slab_bytes=40 * GIB), variant(10.0), variant(10.0))
    assert found.maximum_pool_bytes == 40 * GIB


def test_maximum_is_no_more_than_the_host_can_back_and_no_less_than_the_first_slab() -> None:
    short = settings(FACTS._replace(host_bytes=20 * GIB), variant(10.0), variant(10.0))
    assert short.maximum_pool_bytes == 18 * GIB
    tiny = settings(FACTS._replace(host_bytes=GIB), variant(10.0), variant(10.0))
    assert tiny.maximum_pool_bytes == FACTS.capacity_bytes


def test_sizes_that_are_not_advised_are_left_out_of_the_call() -> None:
    found = settings(FACTS, variant(10.0), variant(10.0), sized=False)
    assert found.initial_pool_bytes is found.maximum_pool_bytes is None
    assert found.keywords() == {"prefetch": "auto"}
    assert "others gain less than three hundredths" in dict(found.reasons)["pool sizes"]


def test_default_sizes_are_half_the_card_and_what_the_host_backs() -> None:
    assert default_sizes(FACTS) == (8 * GIB, 144 * GIB)
    assert default_sizes(FACTS._replace(host_bytes=100 * GIB))[1] == pytest.approx(90 * GIB)
    assert default_sizes(FACTS._replace(host_bytes=GIB))[1] == FACTS.capacity_bytes


def test_budget_is_what_is_enough_or_else_the_card() -> None:
    enough = settings(FACTS, variant(10.0), variant(10.0))
    assert enough.enough_bytes == 9 * GIB
    short = settings(FACTS._replace(capacity_bytes=8 * GIB), variant(20.0), variant(20.0))
    assert short.enough_bytes == 8 * GIB
    assert "2.00 times" in dict(short.reasons)["enough memory"]


def test_budget_of_the_whole_card_leaves_nothing_to_others() -> None:
    rest = "the rest of the card can serve others"
    assert rest in reason("enough memory", enough_bytes=14 * GIB)
    whole = reason("enough memory", enough_bytes=16 * GIB)
    assert "add device_budget" not in whole  # there is nothing to keep to
    assert whole == "the whole card: it runs as if it fitted, and less may not do"


def test_one_process_gets_no_ipc_pool() -> None:
    found = settings(FACTS, variant(10.0), variant(10.0))
    assert set(found.keywords()) == {"initial_pool_size", "maximum_pool_size", "prefetch"}
    assert "ipc_pool_size" not in dict(found.reasons)


def test_workers_get_an_ipc_pool_and_share_the_host() -> None:
    facts = FACTS._replace(ipc_bytes=256 << 20, workers=4)
    found = settings(facts, variant(10.0), variant(10.0))
    assert found.keywords()["ipc_pool_size"] == 256 << 20
    assert found.keywords()["host_sharers"] == 4
    assert "4 workers" in dict(found.reasons)["ipc_pool_size"]


def test_threshold_is_named_only_where_it_is_faster() -> None:
    lower = variant(12.0, Options("auto", 5))
    found = settings(FACTS, variant(15.0), lower)
    assert found.driver_prefetch_threshold == 5
    assert "against 1.50 times" in dict(found.reasons)["uvm_perf_prefetch_threshold"]
    assert settings(FACTS, variant(15.0), variant(15.0)).driver_prefetch_threshold is None


def test_parts_are_named_only_where_the_input_is_better_split() -> None:
    facts = FACTS._replace(capacity_bytes=4 * GIB)
    assert settings(facts, variant(90.0), variant(90.0)).parts == 1
    split = settings(facts._replace(splits=True), variant(90.0), variant(90.0))
    assert split.parts == 3 == parts_needed(10 * GIB, 4 * GIB)
    assert "parts" in dict(split.reasons)


def test_step_that_helps_most_is_the_one_that_saves_most() -> None:
    found = helps_most([(16, 3.0), (24, 2.8), (40, 1.01), (80, 1.0)])
    assert found is not None
    assert (found.from_bytes, found.to_bytes, found.enough_bytes) == (24, 40, 40)


def test_step_out_of_running_out_of_memory_helps_most() -> None:
    found = helps_most([(16, None), (24, 9.0), (40, 1.0)])
    assert found is not None
    assert (found.from_bytes, found.to_bytes, found.from_slowdown) == (16, 24, None)


@pytest.mark.parametrize(
    "cards", [[(16, 1.0), (24, 1.0)], [(16, 2.0)], [], [(16, None), (24, None)]]
)
def test_no_step_helps_where_none_saves_time(cards: list[tuple[int, float | None]]) -> None:
    assert helps_most(cards) is None


def reasons_of(settled: Settled, defaults: Variant, replayed: Variant) -> dict[str, str]:
    return dict(settings_of(FACTS, defaults, settled, replayed).reasons)


def test_faster_replay_that_the_pool_rejects_is_named_with_its_times() -> None:
    defaults, faster = variant(15.0), variant(12.0, Options("never", 5))
    told = (
        Tried(defaults, False, 2.0),
        Tried(faster, True, 2.5),
        Tried(faster, False, 2.25),
        Tried(defaults, True, 3.0),
    )
    why = reasons_of(Settled(defaults, False, told), defaults, faster)
    assert why["prefetch"] == (
        "the default: prefetch never, threshold 5 % is faster only when replayed, 1.20 times as "
        "long as if it fitted, against 1.50 times with the defaults; with the pool itself 2.2 s "
        "of driver work, against 2.0 s by default"
    )
    assert (
        "11.00 GiB and 31.00 GiB 2.5 s of driver work, with the defaults 2.0 s"
        in (why["pool sizes"])
    )
    stays = reasons_of(Settled(defaults, False, told[::3]), defaults, defaults)
    assert "only when replayed" not in stays["prefetch"]


@pytest.mark.parametrize(
    ("seconds", "usual_seconds", "said"),
    [
        (0.00092, 0.00103, "with the pool itself 920 us of driver work, against 1.03 ms by def"),
        (0.0105, 0.0114, "with the pool itself 8% less driver work than by default"),
        (1.14, 1.06, "with the pool itself 8% more driver work than by default"),
        (0.0104, 0.01041, "with the pool itself as much driver work as by default"),
    ],
)
def test_times_that_read_alike_are_no_reason(
    seconds: float, usual_seconds: float, said: str
) -> None:
    defaults, faster = variant(15.0), variant(12.0, Options("always"))
    told = (Tried(defaults, False, usual_seconds), Tried(faster, True, seconds))
    why = reasons_of(Settled(faster, True, told), defaults, faster)["prefetch"]
    assert said in why


def test_faster_replay_that_runs_out_of_memory_with_the_pool_says_so() -> None:
    defaults, faster = variant(15.0), variant(12.0, Options("always"))
    told = (Tried(defaults, False, 2.0), Tried(faster, True, None), Tried(faster, False, None))
    why = reasons_of(Settled(defaults, False, told), defaults, faster)
    assert "with the pool itself running out of memory, against 2.0 s" in why["prefetch"]


def test_mode_that_the_pool_confirms_has_the_times_of_both() -> None:
    defaults, faster = variant(15.0), variant(12.0, Options("always"))
    told = (Tried(defaults, False, 2.0), Tried(faster, True, 1.5), Tried(faster, False, 1.0))
    why = reasons_of(Settled(faster, False, told), defaults, faster)
    assert "with the pool itself 1.0 s of driver work, against 2.0 s" in why["prefetch"]
    assert "with the defaults 1.0 s" in why["pool sizes"]


def test_reasons_where_everything_runs_out_of_memory_name_nothing_as_faster() -> None:
    defaults = variant(None)
    told = (Tried(defaults, False, None), Tried(defaults, True, None))
    why = reasons_of(Settled(defaults, False, told), defaults, defaults)
    assert why["prefetch"] == "the default: every way that was replayed runs out of memory"
    assert "runs out of memory with others too" in why["pool sizes"]


def test_settings_where_only_the_pool_runs_out_of_memory_claim_nothing_of_fitting() -> None:
    defaults = variant(10.0)
    told = (Tried(defaults, False, None), Tried(defaults, True, None))
    found = dict(settings_of(FACTS, defaults, Settled(defaults, False, told)).reasons)
    assert "with the pool itself, it runs out of memory" in found["prefetch"]
    assert found["enough memory"] == "the whole card, and still it runs out of memory"
    works = (Tried(defaults, False, 1.0), Tried(defaults, True, None))
    found = dict(settings_of(FACTS, defaults, Settled(defaults, False, works)).reasons)
    assert found["prefetch"] == "the default: it runs as if it fitted"
    assert "runs out" not in found["enough memory"]


@pytest.mark.parametrize(("enough", "advised"), [(4, 8), (8, 8), (10, 10)])
def test_budget_that_is_advised_is_one_that_is_accepted(enough: int, advised: int) -> None:
    facts = FACTS._replace(enough_bytes=enough << 20, capacity_bytes=64 << 20)
    found = settings_of(facts, variant(10.0), Settled(variant(10.0), False))
    assert found.enough_bytes == advised << 20
    assert Budget(found.enough_bytes).budget_bytes == advised << 20
    why = dict(found.reasons)["enough memory"]
    assert ("the least that a budget" in why) == (enough < 8)
    assert why.endswith("no part of the call, add device_budget to keep to it")
    assert "device_budget" not in found.keywords()
    with pytest.raises(ConfigurationError, match="at least"):
        Budget((advised << 20) // 8 * 4)


def test_threshold_says_who_sets_it_and_how() -> None:
    found = settings(FACTS, variant(15.0), variant(12.0, Options("auto", 5)))
    why = dict(found.reasons)["uvm_perf_prefetch_threshold"]
    assert "modprobe nvidia_uvm uvm_perf_prefetch_threshold=5" in why
    assert "root" in why
    assert "modprobe" not in str(settings(FACTS, variant(15.0), variant(15.0)).reasons)

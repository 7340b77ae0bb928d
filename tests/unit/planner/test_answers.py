# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The two questions: verdicts, and that the words name card, machine and figures."""

from __future__ import annotations

from rmm_uvm.planner.advice.answers import AnswerFacts, more_data, splitting
from rmm_uvm.planner.request import Options

from .test_advice import variant
from .workloads import GIB


def asked(
    seconds: float | None,
    capacity: float,
    *,
    tolerable: float = 8.0,
    host_bytes: int | None = None,
) -> AnswerFacts:
    """Return what is asked of 10 GiB that take 10 s where they fit, and `seconds` here."""
    return AnswerFacts(
        device_bytes=int(capacity * GIB),
        capacity_bytes=int(capacity * GIB),
        peak_bytes=10 * GIB,
        advised=variant(seconds),
        tolerable_bytes=int(tolerable * GIB),
        machine="h200-pcie5",
        host_bytes=host_bytes,
    )


def test_whole_input_on_a_card_that_holds_it_is_a_yes() -> None:
    answer = splitting(asked(10.0, 16))
    assert answer.verdict == "yes"
    assert answer.text.startswith("Yes: on a card of 16.00 GiB in h200-pcie5 all of it fits.")
    assert "10.00 GiB" in answer.text


def test_whole_input_that_runs_a_little_longer_is_a_yes_with_its_cost() -> None:
    answer = splitting(asked(12.0, 8))
    assert answer.verdict == "yes"
    for figure in ("8.00 GiB", "1.25 times the managed capacity", "1.20 times as long", "2 parts"):
        assert figure in answer.text


def test_whole_input_that_runs_longer_has_its_price() -> None:
    answer = splitting(asked(17.0, 6))
    assert answer.verdict == "at a price"
    assert "1.70 times as long" in answer.text
    assert "In 2 parts each would fit" in answer.text


def test_whole_input_that_thrashes_is_better_split() -> None:
    answer = splitting(asked(40.0, 4))
    assert answer.verdict == "no"
    assert answer.text.startswith("Better not: on a card of 4.00 GiB")
    assert "In 3 parts" in answer.text


def test_whole_input_that_runs_out_of_memory_is_a_no_that_says_where() -> None:
    answer = splitting(asked(None, 4))
    assert answer.verdict == "no"
    assert "runs out of memory in join, where it asks for 5 B" in answer.text


def test_more_data_than_cudamalloc_holds_is_a_yes_with_the_gain() -> None:
    answer = more_data(asked(10.0, 16))
    assert answer.verdict == "yes"
    for figure in ("16.00 GiB", "2.00 times these data", "ends at 1.60 times", "25% more"):
        assert figure in answer.text


def test_more_data_by_a_lot_is_told_as_a_factor() -> None:
    assert "4.0 times as much" in more_data(asked(10.0, 16, tolerable=2.5)).text


def test_more_data_where_these_are_too_much_already_is_a_no() -> None:
    answer = more_data(asked(40.0, 4))
    assert answer.verdict == "no"
    assert "already these data take 4.00 times" in answer.text
    assert "0.50 times the data" in answer.text
    assert "still 25% more" in answer.text
    assert "run out of memory" in more_data(asked(None, 4)).text


def test_more_data_without_gain_says_that_it_is_the_card() -> None:
    roomy = more_data(asked(10.0, 20, tolerable=10.0))
    assert (roomy.verdict, roomy.text[:34]) == ("yes", "Yes, as far as the card goes: on a")
    full = more_data(asked(10.0, 10, tolerable=10.0))
    assert full.verdict == "no"
    assert full.text.startswith(
        "Hardly: on a card of 10.00 GiB in h200-pcie5 more than these data would take more than "
        "1.25 times as long as with room for all of it; "
    )
    host = more_data(asked(10.0, 10, tolerable=4.0, host_bytes=10 * GIB))
    assert "more than these data has no room, since the host has 10.00 GiB" in host.text


def test_workload_that_the_pool_cannot_hold_is_a_no_to_both_whatever_replays_say() -> None:
    fits = asked(10.0, 16, host_bytes=1 << 20)
    fails = fits._replace(pool_fails=True)
    whole = splitting(fails)
    assert (splitting(fits).verdict, whole.verdict) == ("yes", "no")
    assert "all of it fits" not in whole.text
    assert "RMM's pool, whose memory breaks into pieces, takes more than its maxi" in whole.text
    more = more_data(fails)
    assert (more.verdict, "already these data run out of memory in RMM's pool" in more.text) == (
        "no",
        True,
    )


def test_pool_that_runs_out_on_a_card_with_room_asks_for_no_host_memory() -> None:
    # GIVEN a card that holds all that is allocated at a time, and one that does not
    roomy, tight = (
        splitting(asked(10.0, size, host_bytes=1 << 20)._replace(pool_fails=True)).text
        for size in (16, 8)
    )
    # THEN only of the second something does not fit, and goes to the host
    assert "0.62 times the managed capacity, which would fit; RMM's pool" in roomy
    assert "the larger of the card and 0.9 times the host's 1.00 MiB: a larger card, or" in roomy
    assert "what does not fit" not in roomy
    assert "runs out of it, and the host has 1.00 MiB for what does not fit. In 2 parts" in tight
    assert "which would fit" not in tight
    # THEN where host memory is not limited none is asked for
    plain = splitting(asked(10.0, 16)._replace(pool_fails=True)).text
    assert "takes more than its maximum: a larger card would do." in plain


def test_card_with_room_on_which_a_replay_runs_out_says_what_else_takes_memory() -> None:
    text = splitting(asked(None, 16, host_bytes=1 << 20)).text
    assert "device and host together hold too little" in text
    assert "room for all that is allocated at a time; what was freed, or is used by" in text
    assert "allocated at a time; what" not in splitting(asked(None, 4, host_bytes=1 << 20)).text


def test_more_data_ends_where_the_host_does() -> None:
    answer = more_data(asked(10.0, 16, tolerable=4.0, host_bytes=20 * GIB))
    assert "2.00 times these data" in answer.text
    assert "since the host has 20.00 GiB" in answer.text
    assert "4.00 times these data" in more_data(asked(10.0, 16, tolerable=4.0)).text


def test_answers_of_another_way_than_the_defaults_name_it_and_what_those_take() -> None:
    never = Options("never")
    plain = asked(10.0, 16)
    other = plain._replace(
        advised=variant(10.0, never), defaults=variant(45.0), tolerable_options=never
    )
    whole = splitting(other).text
    assert whole.startswith("Yes: on a card of 16.00 GiB in h200-pcie5, with prefetch never, all")
    assert whole.endswith("With the default settings it takes 4.50 times as long.")
    assert "in h200-pcie5, with prefetch never, up to 2.00 times" in more_data(other).text
    fails = splitting(other._replace(defaults=variant(None))).text
    assert fails.endswith("With the default settings it runs out of memory.")
    slow = splitting(other._replace(advised=variant(17.0, never))).text
    assert "takes 1.70 times as long" in slow
    assert "it takes 4.50 times as long" in slow
    for answer in (splitting(plain), more_data(plain)):
        assert "prefetch" not in answer.text
        assert "default settings" not in answer.text


def test_data_that_fit_and_move_all_the_same_are_told_as_spread_and_not_as_too_many() -> None:
    spread = asked(40.0, 16, tolerable=20.0)
    whole, more = splitting(spread), more_data(spread)
    assert (whole.verdict, more.verdict) == ("no", "no")
    assert "holds up to 10.00 GiB, which would fit, but replayed it takes 4.00 times" in whole.text
    for answer in (whole, more, more_data(asked(10.0, 24, tolerable=20.0))):
        assert "a replay, which keeps the recorded addresses: they spread" in answer.text
    assert "Half of it" not in whole.text
    assert "times the data would take" not in more.text
    for dense in (asked(40.0, 4), asked(10.0, 16)):
        assert "spread" not in splitting(dense).text + more_data(dense).text
    assert "spread" in splitting(asked(12.0, 16)).text

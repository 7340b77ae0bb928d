# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The two questions: verdicts, and that the words name card, machine and figures."""

from __future__ import annotations

from rmm_uvm.planner.answers import Asked, more_data, splitting

from .test_advice import variant
from .workloads import GIB


def asked(
    seconds: float | None,
    capacity: float,
    *,
    tolerable: float = 8.0,
    host_bytes: int | None = None,
) -> Asked:
    """Return what is asked of 10 GiB that take 10 s where they fit, and `seconds` here."""
    return Asked(
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
    assert (full.verdict, full.text[:6]) == ("no", "Hardly")


def test_more_data_ends_where_the_host_does() -> None:
    answer = more_data(asked(10.0, 16, tolerable=4.0, host_bytes=20 * GIB))
    assert "2.00 times these data" in answer.text
    assert "since the host has 20.00 GiB" in answer.text
    assert "4.00 times these data" in more_data(asked(10.0, 16, tolerable=4.0)).text

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The sentences above the cards: they agree with the table, whoever runs out of memory."""

from __future__ import annotations

import dataclasses
import re

from rmm_uvm.planner.views.headline import enough_text, helps_text, ran_out_text

from .test_planning import DEVICE, planned
from .workloads import GIB, FakeReplay

SHORT = FakeReplay(host_needed_bytes=4 * GIB)


def test_headline_of_cards_that_run_names_the_step_and_what_is_enough() -> None:
    text = helps_text(planned())
    assert text.startswith("The step that helps most: 8.00 GiB to 16.00 GiB, from 1.43 to 1.00")
    assert "are enough to run as if it fitted" in text
    assert "out of memory" not in text


def test_headline_where_all_cards_run_out_names_no_card_that_is_faster() -> None:
    replay = FakeReplay(runs_out_below_bytes=12 * GIB)
    plan = planned(replay=replay, **{DEVICE: [8 * GIB, 11 * GIB]})
    text = helps_text(plan)
    assert text.startswith("It runs out of memory on every card in every way that was replayed.")
    assert "makes it faster" not in text
    # A card that was not asked for would do; with too little host memory none would.
    assert enough_text(plan) in text
    text = helps_text(planned(replay=SHORT, host_memory="2GiB"))
    assert text.startswith("No larger card helps. It runs out of memory on every card")
    assert text.endswith("No card is enough with 2.00 GiB of host memory for a process.")
    assert "are enough" not in text


def test_headline_where_some_cards_run_out_names_them() -> None:
    replay = FakeReplay(runs_out_below_bytes=9 * GIB)
    plan = planned(replay=replay, **{DEVICE: [4 * GIB, 8 * GIB, 16 * GIB, 24 * GIB]})
    text = helps_text(plan)
    assert "8.00 GiB to 16.00 GiB, from running out of memory to 1.00 times" in text
    assert "It runs out of memory on 4.00 GiB and 8.00 GiB in every way" in text
    equal = planned(replay=replay, **{DEVICE: [16 * GIB, 24 * GIB]})
    assert helps_text(equal).startswith("No larger card than 16.00 GiB makes it faster. ")
    assert ran_out_text(equal) == ""


def test_headline_where_only_the_pool_runs_out_says_what_its_figures_are_of() -> None:
    plan = planned()
    failing = dataclasses.replace(plan.cards[1], pool_out_of_memory=True)
    text = helps_text(dataclasses.replace(plan, cards=(plan.cards[0], failing)))
    assert "Tried with RMM's pool, it runs out of memory on 16.00 GiB: the table, and" in text
    assert "Tried with" not in helps_text(plan)


def test_headline_calls_no_card_enough_on_which_the_pool_runs_out() -> None:
    def told(failing: int, host_bytes: int | None = None) -> str:
        cards = tuple(
            dataclasses.replace(card, pool_out_of_memory=number < failing)
            for number, card in enumerate(plan.cards)
        )
        return enough_text(dataclasses.replace(plan, cards=cards, host_bytes=host_bytes))

    plan = planned(**{DEVICE: [8 * GIB, 16 * GIB, 24 * GIB]})
    # GIVEN a pool that runs out nowhere, or only where a replay says that it is not enough
    assert plan.tolerable_bytes is not None
    assert 8 * GIB < plan.tolerable_bytes <= 16 * GIB
    assert told(0) == told(1)
    assert "RMM's pool" not in told(0)
    # WHEN it runs out on a card that a replay calls large enough
    # THEN what is enough is told to be of a replay, with the card on which the pool runs
    assert told(2).startswith("In a replay ")
    assert told(2).endswith("; RMM's pool breaks into pieces and needs more: it runs on 24.00 GiB.")
    assert told(3).endswith("needs more: a larger card.")
    assert told(2, GIB).endswith(
        "24.00 GiB, or with host memory beyond the card's (a process has 1.00 GiB)."
    )
    assert told(3, GIB).endswith(
        "a larger card, or host memory beyond the card's (a process has 1.00 GiB)."
    )


def test_headline_of_one_card_that_runs_out_says_so() -> None:
    (card,) = [8 * GIB]
    text = helps_text(planned(replay=FakeReplay(runs_out_below_bytes=9 * GIB), **{DEVICE: [card]}))
    assert text.startswith("It runs out of memory on 8.00 GiB in every way that was replayed.")
    assert not helps_text(planned(**{DEVICE: [card]})).startswith("It runs out")


def test_headline_says_where_only_the_defaults_run_out() -> None:
    class Modal(FakeReplay):
        """Runs out of memory with the defaults alone."""

        def __call__(self, *args: object, **how: object) -> object:  # type: ignore[override]
            self.runs_out_below_bytes = 9 * GIB if how["prefetch"] == "auto" else 0
            return super().__call__(*args, **how)  # type: ignore[arg-type]

    plan = planned(replay=Modal())
    assert plan.cards[0].advised.options.prefetch != "auto"
    text = helps_text(plan)
    assert "With the default settings it runs out of memory on 8.00 GiB." in text
    assert "in every way" not in text


def test_headline_says_what_is_enough_for_the_defaults_where_others_are_advised() -> None:
    assert "With the default settings" not in helps_text(planned())
    text = helps_text(planned(replay=FakeReplay({"never": 0.5})))
    assert re.search(r"With the default settings [\d.]+ GiB are enough", text)

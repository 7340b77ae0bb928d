# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much has to be copied, of what lived in the rounds before."""

from __future__ import annotations

from rmm_uvm.torch.demand import ActivationDemand

BUDGET_BYTES = 1600
MARGIN_BYTES = 100


def needed_after(demand: ActivationDemand, *most_bytes: int) -> list[int | None]:
    """Return what is needed as each next round begins."""
    found = []
    for each in most_bytes:
        demand.on_keep(each // 2)
        demand.on_need(each)
        assert demand.on_keep(0)
        found.append(demand.needed_bytes)
    return found


def test_a_little_less_is_not_followed_and_more_at_once() -> None:
    demand = ActivationDemand(BUDGET_BYTES)
    rounds = [2000, *[1950] * 8, *[1850] * 8, 2000]  # eight rounds count
    found = needed_after(demand, *rounds)
    assert found[:9] == [500] * 9
    assert found[9:16] == [500] * 7  # 450 would do
    assert found[16] == 350
    assert found[17] == 500


def test_what_fits_needs_nothing_however_little_is_missing() -> None:
    demand = ActivationDemand(BUDGET_BYTES)
    found = needed_after(demand, 1601, *[1599] * 8)
    assert found == [101] * 8 + [0]


class Evicted:
    """What was evicted until now: so much in each round, in turn."""

    def __init__(self, *in_rounds: int) -> None:
        self._in_rounds = list(in_rounds)
        self._total = 0

    def __call__(self) -> int:
        self._total += self._in_rounds.pop(0) if self._in_rounds else 0
        return self._total


def test_what_is_evicted_in_three_known_rounds_in_a_row_is_missing_from_then_on() -> None:
    # Of the first round it is not known what leaves: everything does.
    demand = ActivationDemand(BUDGET_BYTES, Evicted(5000, 150, 130, 170))
    found = needed_after(demand, *[2000] * 12)
    assert found == [500, 500, 500, *[630] * 9]


def test_what_is_evicted_in_fewer_rounds_in_a_row_is_not() -> None:
    demand = ActivationDemand(BUDGET_BYTES, Evicted(5000, 700, 300, 0, 150, 150, 0, 150))
    assert needed_after(demand, *[2000] * 12) == [500] * 12


def test_what_is_missing_grows_while_it_is_not_enough_up_to_a_quarter_of_the_budget() -> None:
    demand = ActivationDemand(BUDGET_BYTES, Evicted(0, *[150] * 12))
    found = needed_after(demand, *[2000] * 13)
    assert found == [*[500] * 3, *[650] * 3, *[800] * 3, *[900] * 4]


def test_less_is_tried_after_many_rounds_without() -> None:
    demand = ActivationDemand(BUDGET_BYTES, Evicted(0, *[400] * 3, *[0] * 70, 1, 0))
    found = needed_after(demand, *[2000] * 140)
    assert found[3:67] == [900] * 64
    assert found[67:138] == [700] * 71  # 7 of them, one with an eviction, and 63
    assert found[138:] == [600] * 2


def test_it_is_known_whether_it_was_enough() -> None:
    demand = ActivationDemand(BUDGET_BYTES, Evicted(0, 0, 5, 0))
    found = []
    for _ in range(4):
        needed_after(demand, 2000)
        found.append(demand.was_enough)
    assert found == [False, True, False, True]

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


class Program:
    """Rounds of a program with a budget: what is not seen of a round is evicted if it is too much.

    Evicted is what is left of a round's peak once that is gone which had to leave.
    """

    def __init__(self) -> None:
        self.demand = ActivationDemand(BUDGET_BYTES, lambda: self._evicted_bytes)
        self._evicted_bytes = 0

    def round(self, seen_bytes: int, unseen_bytes: int = 0, after_bytes: int = 0) -> int:
        """Go through one; return what was evicted before its last need.

        Parameters
        ----------
        after_bytes : int
            What is evicted after its last need, as by steps of optimisers.
        """
        demand = self.demand
        demand.on_keep(seen_bytes)
        gone_bytes = seen_bytes if demand.needed_bytes is None else demand.needed_bytes
        evicted_bytes = max(seen_bytes + unseen_bytes - gone_bytes - BUDGET_BYTES, 0)
        self._evicted_bytes += evicted_bytes
        demand.on_need(0)
        self._evicted_bytes += after_bytes
        return evicted_bytes

    def rounds(self, total: int, seen_bytes: int, unseen_bytes: int = 0) -> list[int]:
        """Go through some; return what was evicted in each."""
        return [self.round(seen_bytes, unseen_bytes) for _ in range(total)]


def test_unseen_bytes_are_learnt_in_three_rounds_and_nothing_is_evicted_then() -> None:
    program = Program()
    assert program.rounds(8, 2000, 250) == [0, 150, 150, 150, 0, 0, 0, 0]  # the margin takes 100
    assert program.demand.unseen_bytes == 150
    assert program.demand.needed_bytes == 650


def test_what_is_evicted_while_it_is_not_known_what_is_to_leave_is_no_sign() -> None:
    evicted_bytes = 0
    demand = ActivationDemand(BUDGET_BYTES, lambda: evicted_bytes)
    demand.on_keep(2000)
    evicted_bytes = 5000
    demand.on_need(2000)
    assert needed_after(demand, *[2000] * 12) == [500] * 12


def test_what_is_evicted_after_the_last_need_is_no_sign_and_yet_it_was_not_enough() -> None:
    program = Program()
    for _ in range(20):
        program.round(2000, after_bytes=300)
        assert not program.demand.was_enough
    assert program.demand.unseen_bytes == 0
    assert program.demand.needed_bytes == 500


def test_unseen_bytes_that_grow_after_a_peak_that_fell_a_little_are_learnt_as_soon() -> None:
    program = Program()
    program.rounds(12, 2050)
    evicted = program.rounds(20, 2000, 200)
    assert evicted[:3] == [50, 50, 50]
    assert not any(evicted[3:])


def test_what_is_seen_alone_fits_is_tried_away_and_nothing_leaves_any_more() -> None:
    program = Program()
    program.rounds(20, 2000, 400)
    program.rounds(64 + 8, 1500)
    assert program.demand.unseen_bytes == 0
    assert program.demand.needed_bytes == 0


def test_it_is_enough_after_twice_as_many_rounds_each_time_it_was_not() -> None:
    program = Program()
    program.rounds(2, 2000)
    found = []
    for _ in range(3):
        rounds = 0
        while not program.demand.was_enough:
            program.round(2000)
            rounds += 1
        found.append(rounds)
        program.round(2000, after_bytes=2)
        program.round(2000)  # which looks
    assert found == [1, 2, 4]


def test_evaluations_between_long_trainings_do_not_end_it_for_good() -> None:
    program = Program()
    program.rounds(2, 2000)
    found = []
    for _ in range(40):
        enough = []
        for number in range(50):
            program.round(2000, after_bytes=100 if number == 49 else 0)
            enough.append(program.demand.was_enough)
        found.append(sum(enough))
    assert min(found[1:]) >= 48


def test_what_others_evict_in_each_round_has_nothing_copied_for_long() -> None:
    demand = ActivationDemand(BUDGET_BYTES, lambda: evicted_bytes)
    evicted_bytes, copied = 0, 0
    for _ in range(400):
        demand.on_keep(1500)
        evicted_bytes += 5
        demand.on_need(1500)
        copied += bool(demand.needed_bytes)
    assert copied < 20

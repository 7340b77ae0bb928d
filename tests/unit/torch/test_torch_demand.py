# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much has to be copied, of what lived in the rounds before."""

from __future__ import annotations

from rmm_uvm.torch.activations.demand import ActivationDemand

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
    evicted = iter(range(100))  # in every round, so that it is never enough
    demand = ActivationDemand(BUDGET_BYTES, lambda: next(evicted))
    rounds = [2000, *[1950] * 8, *[1850] * 8, 2000]  # eight rounds count
    found = needed_after(demand, 3000, *rounds)[1:]
    assert found[:9] == [500] * 9
    assert found[9:16] == [500] * 7  # 450 would do
    assert found[16] == 350
    assert found[17] == 500


def test_where_it_was_enough_twice_as_much_is_little() -> None:
    demand = ActivationDemand(BUDGET_BYTES)
    found = needed_after(demand, 3000, 2000, *[1850] * 10, *[1750] * 8)[1:]
    assert demand.was_enough
    assert found[:-1] == [500] * 18  # 350 would do
    assert found[-1] == 250


def test_what_could_not_leave_is_missing_at_the_peak_for_what_comes_back_early() -> None:
    demand = ActivationDemand(BUDGET_BYTES)
    assert demand.ahead_bytes(400, 0) == MARGIN_BYTES  # nothing is known yet
    for _ in range(3):
        for position, live_bytes in ((0, 100), (400, 500), (800, 2000)):
            demand.is_worth_a_look(position, backward=False)
            demand.on_keep(live_bytes)
        demand.is_worth_a_look(800, backward=True)
        demand.on_need(0)
    assert demand.needed_bytes == 500
    at_peak = [demand.ahead_bytes(400, left_bytes) for left_bytes in (0, 400, 470, 500, 600)]
    assert at_peak == [0, 0, 70, 100, 100]
    assert demand.ahead_bytes(399, 0) == MARGIN_BYTES
    assert demand.ahead_bytes(400, 0) == MARGIN_BYTES  # it was used: there is room in its place
    demand.is_worth_a_look(0, backward=False)
    demand.on_keep(100)
    assert demand.ahead_bytes(400, 450) == 50


def test_what_fits_needs_nothing_however_little_is_missing() -> None:
    demand = ActivationDemand(BUDGET_BYTES)
    found = needed_after(demand, 1601, 1601, *[1599] * 8)
    assert found == [101] * 9 + [0]


def test_round_of_which_all_left_counts_until_there_is_another_one() -> None:
    assert needed_after(ActivationDemand(BUDGET_BYTES), 2050, 2000, 2000) == [550, 500, 500]


class Program:
    """Rounds of a program, of which other parts may evict something."""

    def __init__(self) -> None:
        self.demand = ActivationDemand(BUDGET_BYTES, lambda: self._evicted_bytes)
        self._evicted_bytes = 0

    def round(self, evicted_bytes: int = 0) -> None:
        """Go through one."""
        self.demand.on_keep(2000)
        self._evicted_bytes += evicted_bytes
        self.demand.on_need(0)


def test_what_is_evicted_while_it_is_not_known_what_is_to_leave_is_no_sign() -> None:
    program = Program()
    program.round(5000)
    program.round()
    program.round()
    assert program.demand.was_enough


def test_what_is_evicted_has_nothing_more_copied_and_yet_it_was_not_enough() -> None:
    program = Program()
    for _ in range(20):
        program.round(300)
        assert not program.demand.was_enough
    assert program.demand.needed_bytes == 500


def peak_begins(*looks: tuple[int, int, bool]) -> int:
    """Return from where on most of a round may live in the next one, which begins much later.

    Parameters
    ----------
    looks : tuple
        Positions, bytes, and whether it is backward.
    """
    demand = ActivationDemand(BUDGET_BYTES)
    for position, live_bytes, backward in looks:
        assert demand.is_worth_a_look(position, backward=backward)
        assert not demand.is_at_peak(position)  # nothing is known yet
        demand.on_need(live_bytes) if backward else demand.on_keep(live_bytes)
    assert demand.is_first_look(backward=False)
    assert demand.is_worth_a_look(10_000, backward=False)
    demand.on_keep(100)
    assert not demand.is_first_look(backward=False)
    return next(one for one in range(2000) if demand.is_at_peak(10_000 + one))


def test_most_of_a_round_begins_where_it_was_looked_at_before() -> None:
    forward = ((0, 100, False), (400, 500, False), (800, 2000, False), (1200, 700, False))
    assert peak_begins(*forward, (1150, 1900, True)) == 400
    assert peak_begins(*forward, (1150, 2100, True)) == 1200


def test_all_has_left_by_the_end_of_a_forward_pass_where_most_lives_later() -> None:
    forward = ((0, 100, False), (400, 500, False), (1200, 700, False))
    assert peak_begins(*forward, (1150, 900, True), (800, 950, True), (400, 1900, True)) == 1200


def test_least_of_the_rounds_that_count_says_where_most_may_begin() -> None:
    demand = ActivationDemand(BUDGET_BYTES)
    position = 0
    for at in (900, 300, 600, 900):
        for there in (0, at, at + 100):
            demand.is_worth_a_look(position + there, backward=False)
            demand.on_keep(2000 if there > at else 100)
        demand.is_worth_a_look(position + at, backward=True)
        demand.on_need(0)
        position += 5000
    assert demand.is_worth_a_look(position, backward=False)
    demand.on_keep(100)
    assert not demand.is_at_peak(position + 299)
    assert demand.is_at_peak(position + 300)


def test_it_is_enough_after_twice_as_many_rounds_each_time_it_was_not() -> None:
    program = Program()
    program.round()
    program.round()
    found = []
    for _ in range(3):
        rounds = 0
        while not program.demand.was_enough:
            program.round()
            rounds += 1
        found.append(rounds)
        program.round(2)
        program.round()  # which looks
    assert found == [1, 2, 4]


def test_evaluations_between_long_trainings_do_not_end_it_for_good() -> None:
    program = Program()
    program.round()
    program.round()
    found = []
    for _ in range(40):
        enough = []
        for number in range(50):
            program.round(100 if number == 49 else 0)
            enough.append(program.demand.was_enough)
        found.append(sum(enough))
    assert min(found[1:]) >= 48


def test_what_is_evicted_until_each_has_its_place_again_is_no_sign() -> None:
    program = Program()
    program.round()
    program.round()
    program.round()
    assert program.demand.was_enough
    program.demand.on_moved()
    for evicted_bytes in (900, 100, 0):
        program.round(evicted_bytes)
        assert program.demand.was_enough
    program.round(1)
    program.round()
    assert not program.demand.was_enough


def test_what_was_evicted_before_it_moved_and_in_the_third_round_counts() -> None:
    for rounds in ((5,), (0, 0, 0, 5)):
        program = Program()
        for _ in range(3):
            program.round()
        if len(rounds) == 1:
            program.round(*rounds)
        program.demand.on_moved()
        for evicted_bytes in rounds[1:]:
            program.round(evicted_bytes)
        program.round()
        assert not program.demand.was_enough

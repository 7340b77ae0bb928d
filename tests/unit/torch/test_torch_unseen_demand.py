# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much more has to leave than is seen, of what was evicted all the same."""

from __future__ import annotations

from rmm_uvm.torch.unseen_demand import UnseenDemand

BUDGET_BYTES = 1600


def after(unseen: UnseenDemand, *evicted_bytes: int, fits: bool = False) -> list[int]:
    """Return what is unseen after each round."""
    found = []
    for each in evicted_bytes:
        unseen.look(each, fits=fits)
        found.append(unseen.unseen_bytes)
    return found


def test_least_of_three_rounds_among_eight_is_missing() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    assert after(unseen, 150, 0, 0, 130, 0, 170) == [0] * 5 + [130]


def test_three_among_nine_rounds_are_a_change() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    assert not any(after(unseen, *[700, 0, 0, 0, 300, 0, 0, 0] * 20))


def test_it_grows_while_that_helps_up_to_a_quarter_of_the_budget() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    found = after(unseen, *[190] * 3, *[150] * 3, *[100] * 3, *[50] * 3)
    assert found == [0, 0, *[190] * 3, *[340] * 3, *[400] * 4]


def test_growth_that_helped_nothing_is_taken_back_and_tried_again_much_later() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    found = after(unseen, *[150] * 6)
    assert found == [0, 0, 150, 150, 150, 0]
    assert after(unseen, *[150] * 65) == [*[0] * 64, 150]
    assert after(unseen, *[150] * 3) == [150, 150, 0]
    assert after(unseen, *[150] * 129) == [*[0] * 128, 150]
    # What was learnt before stays.
    unseen = UnseenDemand(BUDGET_BYTES)
    after(unseen, 200, 200, 200)
    assert after(unseen, *[50] * 3)[-1] == 250
    assert after(unseen, *[50] * 3)[-1] == 200


def test_growth_that_helped_stays_although_more_is_evicted_later() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    after(unseen, 150, 150, 150, *[0] * 8)
    assert after(unseen, 200, 200, 200) == [150, 150, 350]


def test_it_grows_by_a_part_of_the_budget_however_little_is_evicted() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    assert after(unseen, 2, 2, 2)[-1] == BUDGET_BYTES // 64


def test_half_is_tried_after_many_rounds_and_again_if_that_was_enough() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    after(unseen, 400, 400, 400)
    found = after(unseen, *[0] * 64 * 5)
    changes = [(n + 1, now) for n, now in enumerate(found) if now != (found[n - 1] if n else 400)]
    assert changes == [(64, 200), (128, 100), (192, 50), (256, 25), (320, 0)]


def test_trial_that_was_not_enough_is_over_at_once_and_the_next_comes_later() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    after(unseen, 400, 400, 400)
    for wait in (64, 128, 256):
        assert after(unseen, *[0] * wait) == [400] * (wait - 1) + [200]
        assert after(unseen, 0, 1) == [200, 400]


def test_trial_that_was_enough_has_the_next_one_come_as_early_as_the_first() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    after(unseen, 400, 400, 400)
    after(unseen, *[0] * 64, 1)  # not enough, and 128 rounds until the next
    after(unseen, *[0] * 128, *[0] * 8)
    assert after(unseen, *[0] * 56)[-2:] == [200, 100]


def test_pauses_between_trials_have_an_end() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    after(unseen, 400, 400, 400)
    for _ in range(12):
        rounds = 1
        while after(unseen, 0) == [400]:
            rounds += 1
        after(unseen, 1)
    assert rounds == 4096


def test_evictions_long_before_a_trial_do_not_count_in_it() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    after(unseen, 400, 400, 400, *[0] * 56, 3, 0, 5, *[0] * 5)
    assert unseen.unseen_bytes == 200
    assert after(unseen, 0, 0) == [200, 200]


def test_none_is_tried_where_what_is_seen_fits() -> None:
    unseen = UnseenDemand(BUDGET_BYTES)
    after(unseen, 400, 400, 400)
    assert after(unseen, *[0] * 64, fits=True)[-2:] == [400, 0]
    assert after(unseen, 30, fits=True) == [400]

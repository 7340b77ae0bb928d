# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Large ones are copied in the place of many small ones, as far as they are enough."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.torch.activations.copies import State
from rmm_uvm.torch.activations.leaving import LargestFirst

from ...support.late_streams import Copying, copying
from ...support.small_transformer import gradients, same, transformer

sizes_of_a_round = st.lists(st.integers(1, 1000), min_size=1, max_size=40)


def taken(choice: LargestFirst, sizes: Sequence[int]) -> list[int]:
    return [nbytes for key, nbytes in enumerate(sizes) if choice.takes(key, nbytes)]


@given(sizes_of_a_round, st.integers(1, 40000))
def test_what_is_taken_is_enough_or_all_but_the_end(sizes: list[int], needed_bytes: int) -> None:
    choice = LargestFirst()
    assert taken(choice, sizes) == sizes
    choice.begin(needed_bytes)
    found = taken(choice, sizes)

    def until(fraction: float) -> list[int]:
        ends = accumulate(sizes)
        return [one for one, end in zip(sizes, ends, strict=True) if end <= sum(sizes) * fraction]

    early = until(7 / 8)
    if sum(early) >= needed_bytes * 17 / 16:
        assert sum(found) >= needed_bytes * 17 / 16
        least = min(found)
        # Not one of those of the least size could be left out with all of its kind.
        assert sum(one for one in found if one > least) < needed_bytes * 17 / 16
    else:
        assert found == until(15 / 16)


def test_what_is_kept_several_times_counts_once() -> None:
    choice = LargestFirst()
    for _ in range(5):
        choice.takes("large", 100)
    for number in range(20):
        assert choice.takes(number, 10)
    choice.begin(150)
    assert choice.takes("large", 100)
    assert choice.takes(0, 10)  # one large one is not enough


def test_need_of_all_takes_all_of_it_but_the_end() -> None:
    choice = LargestFirst()
    taken(choice, [10] * 8)
    choice.begin(80)
    assert taken(choice, [10] * 8) == [10] * 7


def test_round_that_is_longer_than_any_before_is_taken_past_their_end() -> None:
    choice = LargestFirst()
    taken(choice, [10] * 8)
    choice.begin(160)
    assert taken(choice, [10] * 16) == [10] * 15
    choice.begin(160)
    taken(choice, [10] * 4)
    choice.begin(160)  # the longest of the last ones counts
    assert taken(choice, [10] * 16) == [10] * 15
    choice.begin(130)
    assert taken(choice, [10] * 16) == [10] * 14  # those before the last eighth are enough


def test_what_is_passed_over_leaves_the_choice_among_the_others_as_it_was() -> None:
    sizes = {"a": 10, "b": 60, "quiet": 30, "c": 60, "d": 60, "e": 40}
    choice = LargestFirst()
    taken(choice, list(sizes.values()))
    for is_quiet in (False, True, True):
        choice.begin(100)
        before, found = choice.kept_bytes, set()
        for key, nbytes in sizes.items():
            if key == "quiet" and is_quiet:
                choice.pass_over(nbytes)
            elif choice.takes(key, nbytes):
                found.add(key)
        # The last eighth is late, whoever was asked for what is before it.
        assert found == {"b", "c", "d"}
        assert choice.kept_bytes - before == sum(sizes.values())


def test_fewer_and_larger_ones_are_copied_and_gradients_are_the_same() -> None:
    def counts(there: Copying) -> tuple[int, int]:
        return there.counts()["copied_bytes"], there.streams.out_total

    def live_bytes() -> int:
        return 8500 - holds[0].copies._bytes[State.AWAY] if holds else 1 << 40

    holds: list[Copying] = []
    expected = gradients(transformer(), 1)
    with copying(8000, live_bytes) as there:
        gradients(transformer(), 1)
        all_bytes, all_copies = counts(there)
        holds.append(there)
        gradients(transformer(), 10)
        before_bytes, before_copies = counts(there)
        assert same(gradients(transformer(), 1), expected)
        copied_bytes, copies = counts(there)
        needed_bytes = there.copies.statistics()["needed_bytes"]
    assert needed_bytes == 500 + 500  # and the margin
    assert needed_bytes <= copied_bytes - before_bytes < all_bytes / 2
    assert (copied_bytes - before_bytes) / (copies - before_copies) > 1.2 * all_bytes / all_copies

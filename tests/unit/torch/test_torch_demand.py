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


def test_what_was_evicted_all_the_same_counts_once_it_was_known_what_leaves() -> None:
    evicted = 0
    demand = ActivationDemand(BUDGET_BYTES, lambda: evicted)
    evicted = 5000  # before anything was known: everything leaves then
    assert needed_after(demand, 2000) == [500]
    evicted += 150  # temporary tensors, between two looks
    assert needed_after(demand, 2000) == [650]
    assert needed_after(demand, *[2000] * 8) == [*[650] * 7, 500]  # and nothing is evicted now
    evicted += 5000
    assert needed_after(demand, 2000) == [900]  # a quarter of the budget at most

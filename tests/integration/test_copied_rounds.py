# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Copied activations of models in full size come to what has to leave, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from ..scenarios.residency_scripts import script
from ..support.copied_rounds import LINK_BYTES_PER_SECOND, Rounds, copies_of_the_cpu

ROUNDS = 12
pytestmark = pytest.mark.nightly  # whole networks, simulated


@pytest.fixture
def rounds_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(name: str, dtype: str, batch: int) -> Rounds:
        models = script("training/models")
        return Rounds(
            monkeypatch, lambda: models.make(name, batch=batch, dtype=dtype, device="cpu")
        )

    return make


@pytest.mark.parametrize(
    ("name", "dtype", "batch", "factor"),
    [
        ("bert", "bf16", 16, 1.25),
        ("gpt2", "fp32", 4, 1.5),
        ("resnet50", "bf16", 12, 1.25),
    ],
)
def test_copies_make_room_for_all_of_a_step_and_each_comes_back(
    rounds_of: Any, name: str, dtype: str, batch: int, factor: float
) -> None:
    rounds = rounds_of(name, dtype, batch)
    peak_bytes = rounds.peak_bytes()
    budget_bytes = int(peak_bytes / factor)
    found = rounds.under(budget_bytes, ROUNDS)
    # Where torch has just given its free segments back, it has yet to find places that stay.
    last = [one for one in found[-3:] if one.evicted_bytes == 0][-1]
    assert last.peak_bytes <= budget_bytes
    # Nothing was copied that was needed before it had left.
    assert last.returned_bytes == last.copied_bytes
    # A sixteenth of the budget more than has to leave, what blocks are larger, and the last copy.
    excess_bytes = peak_bytes - budget_bytes
    assert excess_bytes <= last.copied_bytes <= excess_bytes + budget_bytes / 4
    # Both ways one after the other are a bound that no copy comes near to, beside kernels.
    link_seconds = last.copied_bytes / LINK_BYTES_PER_SECOND
    assert last.seconds < found[0].seconds + 2.5 * link_seconds


def test_then_all_that_lives_is_known_to_be_there(rounds_of: Any) -> None:
    rounds = rounds_of("resnet50", "bf16", 12)
    # Torch gives its free segments back three times before, and the two rounds after each evict.
    found = rounds.under(int(rounds.peak_bytes() / 1.25), ROUNDS + 6)
    assert all(one.confirmed for one in found[-3:])
    assert len({one.copied_bytes for one in found[-3:]}) == 1
    assert not any(one.evicted_bytes for one in found[-3:])


def test_what_lives_between_two_looks_would_be_evicted_for_ever(
    rounds_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the tests above can fail: what torch has handed out at a look is not enough to know."""
    rounds = rounds_of("bert", "bf16", 16)
    budget_bytes = int(rounds.peak_bytes() / 1.25)
    monkeypatch.setattr(
        "rmm_uvm.torch.memory.CopiedActivations",
        lambda streams, _, budget, live_bytes, **asked: copies_of_the_cpu(
            streams, budget, lambda _: (rounds.active_bytes(),) * 2, **asked
        ),
    )
    found = rounds.under(budget_bytes, ROUNDS)
    assert all(one.evicted_bytes for one in found[-3:])

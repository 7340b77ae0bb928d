# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What ``evict="activations"`` pins: optimisers' state, until it is freed, up to a half."""

from __future__ import annotations

from typing import Any

import torch

import rmm_uvm.torch
from rmm_uvm.torch.extents import Extent
from rmm_uvm.torch.pinned_state import PinnedState

from ...support.fake_torch_cuda import FakeTorchCuda
from .test_torch_memory import make_pool

MIB = 1 << 20


class Pool:
    """A pool with a budget of 64 MiB, and allocations in it."""

    def __init__(self) -> None:
        self.mr = make_pool(64)
        self.prefetcher = self.mr.managed_mr.residency

    def extents(self, *mebibytes: int) -> list[Extent]:
        starts = [(self.mr.allocate(one * MIB), one * MIB) for one in mebibytes]
        return [(start, nbytes, start) for start, nbytes in starts]

    @property
    def pinned_mib(self) -> int:
        kept = self.prefetcher.residency()
        assert kept is not None
        return kept["pinned_bytes"] // MIB


def test_as_much_is_pinned_as_half_of_the_budget_takes_and_each_once() -> None:
    pool = Pool()
    pinned = PinnedState(pool.prefetcher)
    extents = pool.extents(20, 16, 8, 4)
    for _ in range(2):  # steps
        pinned.keep(extents)
        assert pool.pinned_mib == 20 + 8 + 4  # 16 more would be too much
    pinned.end()
    assert pool.pinned_mib == 0


def test_what_is_freed_is_pinned_no_more_and_makes_room() -> None:
    pool = Pool()
    pinned = PinnedState(pool.prefetcher)
    first, second = pool.extents(24, 16)
    pinned.keep([first, second])
    assert pool.pinned_mib == 24
    pinned.freed(second[0])  # which is not
    assert pool.pinned_mib == 24
    pinned.freed(first[0])
    assert pool.pinned_mib == 0
    pinned.keep([second])
    assert pool.pinned_mib == 16
    pinned.freed(second[0])
    pinned.freed(second[0])
    assert pool.pinned_mib == 0


def test_state_of_an_optimiser_is_pinned_after_its_step_until_it_is_freed(
    cuda: FakeTorchCuda, monkeypatch: Any
) -> None:
    mr = make_pool(64)
    with rmm_uvm.torch.managed(mr=mr, evict="activations") as memory:
        state = cuda.allocate(20 * MIB)
        others = [cuda.allocate(30 * MIB) for _ in range(2)]
        assert memory.acting
        monkeypatch.setattr(memory._uses, "_extents", lambda _tensors: [(state, 20 * MIB, state)])

        def pinned_bytes() -> int:
            found: int = memory.statistics()["residency"]["pinned_bytes"]
            return found

        before = pinned_bytes()
        weight = torch.nn.Parameter(torch.ones(1))
        torch.optim.SGD([weight]).step()
        assert pinned_bytes() - before == 20 * MIB
        cuda.free(others[0])
        assert pinned_bytes() - before == 20 * MIB
        cuda.free(state)
        assert pinned_bytes() == before
        again = cuda.allocate(20 * MIB)
        monkeypatch.setattr(memory._uses, "_extents", lambda _tensors: [(again, 20 * MIB, again)])
        torch.optim.SGD([weight]).step()
        assert pinned_bytes() - before == 20 * MIB
    kept = mr.managed_mr.residency.residency()
    assert kept is not None
    assert kept["pinned_bytes"] == before

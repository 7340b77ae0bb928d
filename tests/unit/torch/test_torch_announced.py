# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Uses announced to a pool that torch allocates from through RMM; tensors stand for allocations."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import rmm
import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.residency import Budget
from rmm_uvm.torch.extents import Extent

from ...support.announced_uses import address_of, batch, hooks_there, small_model
from ...support.fake_torch_cuda import FakeTorchCuda

MIB = 1 << 20
ALLOCATION_BYTES = 4 * MIB


class AllocatedModel:
    """A model on the CPU of which every parameter has an allocation on a simulated device."""

    def __init__(self, patch: pytest.MonkeyPatch, *, fetch: bool = True) -> None:
        self.device = rmm_uvm.simulated_device(64 * MIB)
        budget = Budget(
            16 * MIB,
            policy="lru" if fetch else "fifo",
            fetch=fetch,
            discard_dead=fetch,
            background=False,
        )
        # Without a pool: what is freed is given back at once.
        self.mr = UvmResourceAdaptor(ManagedMemoryResource(self.device, budget=budget))
        self.model = small_model()
        self.at = {
            address_of(one): self.mr.allocate(ALLOCATION_BYTES) for one in self.model.parameters()
        }
        patch.setattr("rmm_uvm.torch.announcements.extents_of", self.extents_of)

    def extents_of(
        self, tensors: Iterable[torch.Tensor | None], more_than_bytes: int
    ) -> list[Extent]:
        assert more_than_bytes == 0
        places = [self.at.get(address_of(one)) for one in tensors if one is not None]
        return [(place, ALLOCATION_BYTES, place) for place in places if place is not None]

    def resident_bytes(self, parameter: torch.Tensor) -> int:
        return self.device.resident_bytes(self.at[address_of(parameter)], ALLOCATION_BYTES)

    def count(self, name: str) -> int:
        kept = self.mr.managed_mr.residency.residency()
        return int(kept[name])

    def free(self) -> None:
        for place in self.at.values():
            self.mr.deallocate(place, ALLOCATION_BYTES)


@pytest.mark.usefixtures("cuda")
def test_what_a_step_uses_is_fetched_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = AllocatedModel(monkeypatch)
    first, last = one.model[0], one.model[-1]
    assert one.resident_bytes(first.weight) == 0  # six allocations, and room for four
    before = hooks_there()
    with rmm_uvm.torch.announced(one.mr):
        first(batch())
        assert one.resident_bytes(first.weight) == ALLOCATION_BYTES
        assert one.resident_bytes(first.bias) == ALLOCATION_BYTES
        one.model(batch()).sum().backward()
        assert one.resident_bytes(last.weight) == ALLOCATION_BYTES
    assert hooks_there() == before
    announced_bytes = one.count("wanted_bytes")
    assert announced_bytes >= 8 * ALLOCATION_BYTES
    one.model(batch())
    assert one.count("wanted_bytes") == announced_bytes  # the block is over
    one.free()


@pytest.mark.usefixtures("cuda")
def test_budget_without_fetching_makes_room_as_a_smaller_card(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = AllocatedModel(monkeypatch, fetch=False)
    with rmm_uvm.torch.announced(one.mr):
        one.model(batch()).sum().backward()
    assert one.count("evicted_bytes") > 0
    assert one.count("fetched_bytes") == 0
    assert one.count("resident_bytes") == 16 * MIB
    one.free()
    assert one.count("resident_bytes") == 0  # what is freed takes no room of the card


@pytest.mark.usefixtures("cuda")
def test_exception_in_the_block_takes_the_hooks_away(monkeypatch: pytest.MonkeyPatch) -> None:
    one = AllocatedModel(monkeypatch)
    before = hooks_there()
    with pytest.raises(ZeroDivisionError), rmm_uvm.torch.announced(one.mr):
        raise ZeroDivisionError
    assert hooks_there() == before
    one.free()


def test_pool_without_a_budget_is_served(cuda: FakeTorchCuda) -> None:
    pool = rmm_uvm.managed_pool("8MiB", driver=rmm_uvm.simulated_device(64 * MIB))
    with rmm_uvm.torch.announced(pool):
        small_model()(batch()).sum().backward()
    assert not cuda.routed


def test_no_pool_and_a_foreign_one_are_refused() -> None:
    with pytest.raises(AvailabilityError, match="no managed pool is installed"):
        rmm_uvm.torch.announced().__enter__()
    with pytest.raises(ConfigurationError, match="is not a managed pool of rmm_uvm"):
        rmm_uvm.torch.announced(rmm.mr.CudaMemoryResource()).__enter__()


@pytest.mark.usefixtures("cuda")
def test_all_installed_pools_hear_of_the_tensors_of_their_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pools = [
        rmm_uvm.reinitialize(
            "32MiB", "256MiB", devices=device, driver="simulated:64MiB", device_budget="16MiB",
            libraries=(), monitor=False,
        ).managed_mr
        for device in (0, 1)
    ]  # fmt: skip
    model = small_model()
    parts = ((pools[0], [model[0]]), (pools[1], [model[2][0], model[-1]]))
    at = {
        address_of(tensor): pool.allocate(ALLOCATION_BYTES)
        for pool, layers in parts
        for layer in layers
        for tensor in layer.parameters()
    }

    def extents_of(tensors: Iterable[torch.Tensor | None], more_than_bytes: int) -> list[Extent]:
        places = [at.get(address_of(one)) for one in tensors if one is not None]
        return [(place, ALLOCATION_BYTES, place) for place in places if place is not None]

    def wanted() -> list[int]:
        return [
            rmm_uvm.residency_statistics(device=device).wanted_bytes // ALLOCATION_BYTES
            for device in (0, 1)
        ]

    monkeypatch.setattr("rmm_uvm.torch.announcements.extents_of", extents_of)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rmm_uvm.torch.announced():
        model[0](batch())
        assert wanted() == [2, 0]
        model[-1](torch.ones(1, 16))
        assert wanted() == [2, 2]
        before = wanted()
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        # Those of the second pool take all of its budget: the step is announced part by part, here
        # in one.
        assert [now - then for now, then in zip(wanted(), before, strict=True)] == [2, 4]
    for pool, layers in parts:
        for tensor in (each for layer in layers for each in layer.parameters()):
            pool.deallocate(at[address_of(tensor)], ALLOCATION_BYTES)
    rmm_uvm.restore()

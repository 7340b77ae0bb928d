# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Announces what a training step uses to a pool that torch allocates from through RMM.

With RMM's pluggable allocator torch has no caching allocator, and so no segments to follow: every
tensor is an allocation of the pool. The hooks are those of `managed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import rmm
import torch

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.torch.extents import Extent, extents_of
from rmm_uvm.torch.uses import Announce, Uses, part_that_fits

__all__ = ["announced", "announcing"]


@contextmanager
def announced(mr: rmm.mr.DeviceMemoryResource | None = None) -> Iterator[None]:
    """Announce what torch uses to a managed pool, within a ``with`` block.

    For programs whose torch allocates through RMM: ``rmm_uvm.reinitialize(libraries=("torch",))``.
    `managed` and `install` do this by themselves once memory is short.

    Parameters
    ----------
    mr : rmm.mr.DeviceMemoryResource, optional
        The pool; by default all that are installed, each for the tensors of its device.

    Raises
    ------
    AvailabilityError
        If none is given and none is installed.
    ConfigurationError
        If `mr` is no managed pool of ours.

    Notes
    -----
    Modules, saved tensors and optimisers are seen, of all threads; nothing in a model changes.
    With a budget what is announced is fetched before its use and the policy learns the order;
    without one it is prefetched where it may be away. Memory of other pools is passed over. Small
    tensors are announced too: nothing keeps them on the device here.

    Examples
    --------
    >>> import torch, rmm_uvm.torch
    >>> pool = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="16MiB")
    >>> with rmm_uvm.torch.announced(pool):
    ...     loss = torch.nn.Linear(4, 1)(torch.ones(4))  # on the CPU: nothing to announce
    """
    pools = managed_pools(mr)
    if not pools:  # the off switch is set
        yield
        return
    residencies = [pool.managed_mr.residency for pool in pools]
    announcers = [announcing(each, each.driver.info.device_id) for each in residencies]
    budgets = [_budget_bytes(each) for each in residencies]

    def announce(extents: list[Extent]) -> None:
        for one in announcers:  # each passes over what is the others'
            one(extents)

    def of_step(used: list[Extent]) -> list[Extent]:
        found: list[Extent] = []
        for managed, budget_bytes in zip(residencies, budgets, strict=True):
            found += part_that_fits(budget_bytes, [one for one in used if managed.holds(one[0])])
        return found

    # An allocation's length is known: it is the pool's, not a part of a segment.
    uses = Uses(
        announce,
        lambda _address, _nbytes: None,
        None,
        of_step,
        _extents_of_all,
        budget_bytes=min(budgets),
    )
    try:
        uses.begin()
        yield
    finally:
        uses.end()


def announcing(managed: ManagedResidency, device: int) -> Announce:
    """Return what announces extents to managed memory, in torch's current stream of a device."""

    def announce(extents: list[Extent]) -> None:
        managed.touch_all(extents, torch._C._cuda_getCurrentRawStream(device))

    return announce


def _budget_bytes(managed: ManagedResidency) -> int:
    kept = managed.residency()
    return managed.driver.info.total_bytes if kept is None else kept["budget_bytes"]


def _extents_of_all(tensors: Iterable[torch.Tensor | None]) -> list[Extent]:
    return extents_of(tensors, more_than_bytes=0)

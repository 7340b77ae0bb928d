# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`Uses` on the CPU: every tensor counts, whatever its size, and what is announced is kept."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch._dynamo  # the first optimiser's step imports it, and that adds a filter of warnings
from torch import nn

from rmm_uvm.torch.activations.copied import CopiedActivations
from rmm_uvm.torch.extents import Extent
from rmm_uvm.torch.recompute.recomputation import Recomputation
from rmm_uvm.torch.uses import Uses, part_that_fits

autograd = torch._C._autograd


def extents_of_any(tensors: Iterable[torch.Tensor | None]) -> list[Extent]:
    """Return the memory of tensors wherever they are; none of those that stand for others."""
    found: list[Extent] = []
    for tensor in tensors:
        if tensor is None or tensor.layout is not torch.strided:
            continue
        try:
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
        except (RuntimeError, NotImplementedError):
            continue
        if address:
            found.append((address, storage.nbytes(), address))
    return found


def address_of(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@dataclass
class Announced:
    """What was announced: addresses, group by group, and the names of those that are known."""

    groups: list[list[int]] = field(default_factory=list)
    measured: dict[int, int] = field(default_factory=dict)
    kept: list[list[int]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    uses: Uses | None = None

    @property
    def steps(self) -> int:
        assert self.uses is not None
        return self.uses.steps

    def name(self, module: torch.nn.Module) -> None:
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self.names[address_of(tensor)] = name

    def named(self) -> list[tuple[str, ...]]:
        """Return names, group by group, without groups of memory that has no name."""
        groups = (tuple(self.names.get(one, "") for one in group) for group in self.groups)
        return [named for group in groups if (named := tuple(name for name in group if name))]


def hooks_there() -> tuple[object, ...]:
    """Return what there is of hooks, to be compared."""
    from torch.nn.modules import module
    from torch.optim import optimizer

    return (
        dict(module._global_forward_pre_hooks),
        dict(module._global_forward_hooks),
        dict(module._global_forward_hooks_always_called),
        dict(optimizer._global_optimizer_pre_hooks),
        dict(optimizer._global_optimizer_post_hooks),
        autograd._top_saved_tensors_default_hooks(True),
        autograd._saved_tensors_hooks_is_enabled(),
        autograd._saved_tensors_hooks_disable,
        autograd._saved_tensors_hooks_enable,
        list(warnings.filters),
    )


@contextmanager
def announcing(
    *,
    keep: bool = False,
    budget_bytes: int = 1 << 30,
    begin: bool = True,
    ends_at_once: bool = True,
    copies: CopiedActivations | None = None,
    confirmed: Callable[[], bool] = bool,
    recompute: Recomputation | None = None,
) -> Iterator[Announced]:
    """Have uses announced within the block; afterwards all hooks are as before."""
    before = hooks_there()
    announced = Announced()

    def announce(extents: list[Extent]) -> None:
        announced.groups.append([address for address, _, _ in extents])

    announced.uses = Uses(
        announce,
        announced.measured.__setitem__,
        (lambda extents: announced.kept.append([one[0] for one in extents])) if keep else None,
        functools.partial(part_that_fits, budget_bytes),
        extents_of_any,
        copies,
        confirmed,
        recompute,
        budget_bytes,
    )
    if begin:
        announced.uses.begin()
    try:
        yield announced
    finally:
        announced.uses.end()
    assert hooks_there() == before or not ends_at_once


@contextmanager
def counting_hooks() -> Iterator[dict[str, int]]:
    """Put hooks of a program there, and count how often torch calls them."""
    counts = {"kept": 0, "needed": 0}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        counts["kept"] += 1
        return tensor.detach()

    def need(tensor: torch.Tensor) -> torch.Tensor:
        counts["needed"] += 1
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, need):
        yield counts


def top_hooks() -> object:
    """Return the hooks for saved tensors that count in this thread; None: there are none."""
    return autograd._top_saved_tensors_default_hooks(True)


def small_model() -> nn.Sequential:
    """Return a model of some layers, the same on every call."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(8, 16), nn.Tanh(), nn.Sequential(nn.Linear(16, 16), nn.ReLU()), nn.Linear(16, 4)
    )


def batch() -> torch.Tensor:
    """Return what it takes, the same on every call."""
    return torch.randn(5, 8, generator=torch.Generator().manual_seed(2))

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a training step uses, announced just before it does: modules, saved tensors, optimisers.

Nothing in a model changes: torch calls hooks of ours before every module, when autograd keeps a
tensor for the backward pass and when it needs it again, and before every optimiser's step. They
announce memory and hand back what they were given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from rmm_uvm.torch.extents import Extent, extents_of

__all__ = ["Announce", "Uses"]

Announce = Callable[[list[Extent]], None]

_CHANGED = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [{kind} {shape}] is at version {now}; expected version {then} instead"
)


class Uses:
    """Announces what is used next, between `begin` and `end`. Thread-safe.

    Parameters
    ----------
    announce : callable
        Takes extents that are used together.
    measured : callable
        Takes the address and the bytes of an allocation.
    keep : callable or None
        Takes the extents of parameters and of optimisers' states, which are to stay.
    most_bytes : int
        Of what is announced together: no more than fits.
    """

    def __init__(
        self,
        announce: Announce,
        measured: Callable[[int, int], None],
        keep: Announce | None,
        most_bytes: int,
    ) -> None:
        self._announce = announce
        self._measured = measured
        self._keep_state = keep
        self._most_bytes = most_bytes
        self._handles: list[Any] = []
        self._thread = threading.local()  # .depth of modules; hooks are for each thread
        self.steps = 0

    def begin(self) -> None:
        """Take note from now on. Calls that are under way are passed over."""
        modules = torch.nn.modules.module
        self._handles = [
            modules.register_module_forward_pre_hook(self._before_module),
            modules.register_module_forward_hook(self._after_module, always_call=True),
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]

    def end(self) -> None:
        """Take note of nothing any more; tensors that were kept are handed back as they are."""
        while self._handles:
            self._handles.pop().remove()

    def _before_module(self, module: torch.nn.Module, _inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        stack = self._stack()
        stack.append(module)
        if len(stack) == 1:
            # Within one call, so that hooks of the program's own come and go in their order.
            torch._C._autograd._push_saved_tensors_default_hooks(self._keep, self._need)
        used = extents_of(module._parameters.values())
        if used:
            self._announce(used)

    def _after_module(self, module: torch.nn.Module, _inputs: Any, _outputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        stack = self._stack()
        if not stack:
            return  # it was under way when we began
        stack.pop()
        if not stack:
            torch._C._autograd._pop_saved_tensors_default_hooks()

    def _stack(self) -> list[Any]:
        stack = getattr(self._thread, "stack", None)
        if stack is None:
            stack = self._thread.stack = []
        return stack

    def _keep(self, tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
        extents = extents_of((tensor,))
        if extents:
            address, nbytes, _ = extents[0]
            self._measured(address, nbytes)
            self._announce(extents)
        # With hooks torch itself does not look whether what was kept has been changed since.
        return tensor, tensor._version

    def _need(self, kept: tuple[torch.Tensor, int]) -> torch.Tensor:
        tensor, version = kept
        if tensor._version != version:
            raise RuntimeError(
                _CHANGED.format(
                    kind=tensor.type(),
                    shape=list(tensor.shape),
                    now=tensor._version,
                    then=version,
                )
            )
        extents = extents_of((tensor,))
        if extents:
            self._announce(extents)
        return tensor

    def _before_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        used: list[Extent] = []
        room = self._most_bytes
        for tensor in _of_optimizer(optimizer):
            for extent in extents_of((tensor,)):
                room -= extent[1]
                if room < 0:  # the rest would drive out the first of it
                    self._announce(used)
                    return
                used.append(extent)
        if used:
            self._announce(used)

    def _after_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self.steps += 1
        if self._keep_state is not None:
            self._keep_state(extents_of(_of_optimizer(optimizer, gradients=False)))


def _of_optimizer(
    optimizer: torch.optim.Optimizer, *, gradients: bool = True
) -> Iterable[torch.Tensor]:
    """Yield what a step reads or writes, parameter by parameter."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None and gradients:
                yield parameter.grad
            elif gradients:
                continue
            yield parameter
            for value in optimizer.state.get(parameter, {}).values():
                if isinstance(value, torch.Tensor):
                    yield value

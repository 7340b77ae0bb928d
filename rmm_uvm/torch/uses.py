# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Announces what a training step is about to use: modules, saved tensors, optimisers.

Nothing in a model changes: torch calls hooks of ours before every module, when autograd keeps a
tensor for the backward pass and when it needs it again, and before every optimiser's step. They
announce memory and hand back what they were given.

Which calls of modules are under way is seen from hooks, too. Torch does not call the one after a
module that ended with an interrupt (`KeyboardInterrupt`), and hooks that come while a module is at
work see its end only. So a call is known by its frame.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, chain
from types import FrameType
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from rmm_uvm.torch.activations.copied import CopiedActivations
from rmm_uvm.torch.activations.copies import Kept
from rmm_uvm.torch.activations.saved_tensors import SavedTensorHooks, changed
from rmm_uvm.torch.by_module import ByModule
from rmm_uvm.torch.extents import Extent, bytes_of_blocks, extents_of
from rmm_uvm.torch.quiet_modules import QuietModules
from rmm_uvm.torch.recompute.recomputation import Recomputation
from rmm_uvm.torch.steps_in_parts import is_served, serve_steps

__all__ = ["Announce", "ModuleCalls", "Uses", "part_that_fits"]

_CODE = torch.nn.Module._call_impl.__code__


class ModuleCalls:
    """Calls under way, thread by thread; to be told by torch's hooks, directly. Thread-safe.

    Nothing of a call is kept alive.

    Attributes
    ----------
    threads_total : int
        In which there were calls, outside of backward passes: those run modules again.
    """

    def __init__(self) -> None:
        self._thread = threading.local()  # .frames: identities, the outermost call's first
        self.threads_total = 0

    def enter(self) -> int:
        """Note that a call begins; return how many are under way in this thread with it."""
        frames = self._frames()
        own = _call_of(sys._getframe(2))
        if frames:
            _drop_ended(frames, None if own is None else own.f_back)
        frames.append(id(own))
        return len(frames)

    def leave(self) -> int:
        """Note that a call ends; return how many are under way still, -1 if it was not noted."""
        frames = self._frames()
        own = id(_call_of(sys._getframe(2)))
        if own not in frames:
            return -1  # it was under way before anything was noted
        del frames[frames.index(own) :]
        return len(frames)

    def under_way(self) -> int:
        """Return how many are under way in this thread."""
        return len(self._frames())

    def forget(self) -> None:
        """Forget the calls of this thread."""
        self._frames().clear()

    def _frames(self) -> list[int]:
        frames: list[int] | None = getattr(self._thread, "frames", None)
        if frames is None:
            frames = self._thread.frames = []
            self.threads_total += torch._C._current_graph_task_id() == -1
        return frames


def _drop_ended(frames: list[int], caller: FrameType | None) -> None:
    """Drop calls that ended without our being told: those that are not above the caller."""
    call = _call_of(caller)
    while call is not None and id(call) not in frames:
        call = _call_of(call.f_back)
    del frames[0 if call is None else frames.index(id(call)) + 1 :]


def _call_of(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code is not _CODE:
        frame = frame.f_back
    return frame


_MOST_FRACTION = 7 / 8  # of the budget
_CALM_STEPS = 3  # until hooks of modules are taken away

Announce = Callable[[list[Extent]], None]
# What autograd is handed for one tensor: itself, its version, and the parameters of the module that
# was called, if the backward pass adds to gradients of theirs.
_Plain = tuple[torch.Tensor, int, list[torch.Tensor] | None]


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
    of_step : callable
        Takes the extents that an optimiser's step uses, and returns those to announce; see
        `part_that_fits`.
    extents : callable
        Takes tensors and returns where they are.
    copies : CopiedActivations, optional
        Copies what autograd keeps, as far as it does not fit; by default nothing is copied.
    recompute : Recomputation, optional
        Runs modules again; by default none is.
    confirmed : callable, optional
        Whether all that lives is on the device, since copies make the rest fit: then only what
        comes back is announced. By default everything is.
    budget_bytes : int, optional
        Steps of torch's own optimisers that use more are taken in parts.
    """

    def __init__(
        self,
        announce: Announce,
        measured: Callable[[int, int], None],
        keep: Announce | None,
        of_step: Callable[[list[Extent]], list[Extent]],
        extents: Callable[[Iterable[torch.Tensor | None]], list[Extent]] = extents_of,
        copies: CopiedActivations | None = None,
        confirmed: Callable[[], bool] = bool,
        recompute: Recomputation | None = None,
        budget_bytes: int = sys.maxsize,
    ) -> None:
        self._recompute = recompute
        self._budget_bytes = budget_bytes
        self._announce = announce
        self._measured = measured
        self._keep_state = keep
        self._of_step = of_step
        self._extents = extents
        self._handles: list[Any] = []
        self._module_handle: Any = None  # the hook before modules
        self._calm_steps = 0  # in a row, after which all that lives was on the device
        self._last_handle: Any = None  # the hook after modules: stays until every call has ended
        self._undo: tuple[Callable[[], None], ...] = ()
        self._whole_steps: Callable[[], None] = lambda: None
        self._calls = ModuleCalls()
        self._copies, self._confirmed = copies, confirmed
        self._quiet = None if copies is None else QuietModules(copies)
        self._known: ByModule[bool] = ByModule()  # whether copies were told of its memory
        self._saved = SavedTensorHooks(self._keep, self._need)
        if copies is not None:
            self._saved = SavedTensorHooks(self._keep_or_copy, self._need_or_return)
        # .adds_to: parameters of the module that is called; .is_untold: see `serve_steps`
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._ended = False
        self.steps = 0

    def begin(self) -> None:
        """Take note from now on. Calls that are under way are passed over."""
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        self._look_at_modules()
        self._undo = (self._saved.make_way(), _no_warning_of_global_hooks())
        self._whole_steps = serve_steps(
            self._budget_bytes,
            lambda params: bool(self._extents(params)),
            self._before_part,
            lambda: bool(getattr(self._thread, "is_untold", False)),
        )
        if self._recompute is not None:
            self._recompute.begin()

    def _look_at_modules(self) -> None:
        modules = torch.nn.modules.module
        self._module_handle = modules.register_module_forward_pre_hook(self._before_module)
        self._last_handle = modules.register_module_forward_hook(
            self._after_module, always_call=True
        )

    def _rest_or_go_on(self) -> None:
        """Have no hooks of modules while nothing leaves: what is used is there.

        In between two steps, where no thread is within a module. That something left since is seen
        after the next step.
        """
        copies = self._copies
        is_calm = copies is not None and copies.is_idle() and self._confirmed()
        self._calm_steps = self._calm_steps + 1 if is_calm else 0
        if self._module_handle is None:
            if not self._calm_steps:
                self._look_at_modules()
        elif self._calm_steps >= _CALM_STEPS and self._calls.threads_total <= 1:
            if self._saved.pushed_total or self._calls.under_way():
                return  # within a module's call
            for handle in (self._module_handle, self._last_handle):
                handle.remove()
            self._module_handle = self._last_handle = None

    def end(self) -> None:
        """Take note of nothing any more; tensors that were kept are handed back as they are.

        Threads within a module get rid of their hooks when it ends.
        """
        self._ended = True
        # Graphs that are still there lead to us, and are not to lead any further.
        self._announce = _nothing
        self._measured = _nothing
        self._keep_state = None
        self._confirmed = bool
        self._of_step = list
        try:
            if self._recompute is not None:
                self._recompute.end()
            if self._copies is not None:
                self._copies.end()
        finally:
            self._whole_steps()
            while self._handles:
                self._handles.pop().remove()
            if self._module_handle is not None:
                self._module_handle.remove()
                self._module_handle = None
            self._calls.forget()
            self._saved.pop()
            self._leave_if_over()

    def _leave_if_over(self) -> None:
        if self._saved.pushed_total:
            return
        if self._last_handle is not None:
            self._last_handle.remove()
            self._last_handle = None
        for undo in self._undo:
            undo()
        self._undo = ()

    def _before_module(self, module: torch.nn.Module, _inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self._thread.adds_to = None
        depth = self._calls.enter()
        if depth == 1:
            # Within one call, so that hooks of the program's own come and go in their order.
            self._saved.pop()  # of a call that was interrupted
            self._saved.push()
        if self._quiet is not None and self._is_quiet(module, depth):
            return
        known = self._known.get(module)
        if known and self._confirmed():
            return
        parameters = module._parameters.values()
        self._thread.adds_to = _with_gradients(parameters)
        used = self._extents((*parameters, *module._buffers.values()))
        if used:
            self._announce(used)
        if self._copies is not None:
            self._copies.stay(used)
            if not known:
                self._known.put(module, True)  # noqa: FBT003 - a value

    def _after_module(self, module: torch.nn.Module, _inputs: Any, _outputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self._thread.adds_to = None
        left = self._calls.leave()
        if left == 0:
            self._saved.pop()
        if self._quiet is not None and left >= 0:
            self._look_back(module, left + 1)
        # While an exception passes, torch is going through the hooks: none may leave.
        if self._ended and sys.exc_info()[0] is None:
            self._leave_if_over()

    def _is_quiet(self, module: torch.nn.Module, depth: int) -> bool:
        """Whether a call that begins goes without hooks, as others around it or from here on."""
        quiet = self._quiet
        assert quiet is not None
        around = quiet.depth()
        if 0 < around < depth:
            return True
        if around:
            quiet.break_off()
            self._saved.push()
        if not self._saved.in_force:
            return False  # the program's own are in their place
        if self._recompute is not None and self._recompute.is_looking:
            return False
        if quiet.is_quiet(module) and self._confirmed():
            self._saved.pop()
            quiet.begin(depth)
            return True
        quiet.watch(depth)
        return False

    def _look_back(self, module: torch.nn.Module, depth: int) -> None:
        """Learn of a call that ended."""
        quiet = self._quiet
        assert quiet is not None
        around = quiet.depth()
        if around == depth:
            quiet.end(module)
            if depth > 1 and not self._ended:
                self._saved.push()
        elif not around:
            quiet.learn(module, depth)

    def _keep(self, tensor: torch.Tensor, *, announced: bool = True) -> _Plain:
        extents = self._extents((tensor,))
        if extents:
            address, nbytes, _ = extents[0]
            self._measured(address, nbytes)
            if announced:
                self._announce(extents)
        # With hooks torch itself does not look whether what was kept has been changed since.
        # What is handed back must not lead to the tensor itself: an output would keep its own
        # graph alive, and that nobody could collect.
        return tensor.detach(), tensor._version, getattr(self._thread, "adds_to", None)

    def _need(self, kept: _Plain) -> torch.Tensor:
        tensor, version, adds_to = kept
        if tensor._version != version:
            raise changed(tensor, version)
        extents = self._extents((tensor, *_gradients(adds_to)))
        if extents:
            self._announce(extents)
        return tensor

    def _keep_or_copy(self, tensor: torch.Tensor) -> Kept:
        kept, version, adds_to = self._keep(tensor, announced=not self._confirmed())
        assert self._copies is not None
        found = self._copies.keep(tensor, kept, version)
        if self._recompute is not None and self._recompute.is_looking:
            self._recompute.kept(tensor, leaves=found.tensor is None)
        found.adds_to = adds_to
        return found

    def _need_or_return(self, kept: Kept) -> torch.Tensor:
        assert self._copies is not None
        if self._recompute is not None:
            self._recompute.on_backward()
        tensor = self._copies.need(kept)
        if kept.tensor is not None and self._confirmed():
            return tensor
        extents = self._extents((tensor, *_gradients(kept.adds_to)))
        if extents:
            self._announce(extents)
        return tensor

    def _before_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self._thread.is_untold = False
        if self._confirmed():
            return
        used = self._extents(_of_optimizer(optimizer))
        fitting = self._of_step(used)
        if len(fitting) < len(used) and is_served(optimizer):
            self._thread.is_untold = True  # until its parts are
        elif fitting:
            self._announce(fitting)

    def _before_part(self, tensors: list[torch.Tensor]) -> None:
        if not self._confirmed() and (used := self._extents(tensors)):
            self._announce(used)

    def _after_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        with self._lock:
            self.steps += 1
        if self._copies is not None and torch._C._current_graph_task_id() == -1:
            self._rest_or_go_on()
        keep_state = self._keep_state
        if keep_state is not None:
            keep_state(self._extents(_of_optimizer(optimizer, gradients=False)))


def part_that_fits(budget_bytes: int, used: list[Extent]) -> list[Extent]:
    """Return what to announce of a step: all of it, or as much as half of a budget.

    Half, where it takes nearly all of the budget or more: the rest would drive out the first of it.
    """
    if bytes_of_blocks(used) <= budget_bytes * _MOST_FRACTION:
        return used
    ends = accumulate(nbytes for _, nbytes, _ in used)
    return used[: sum(end <= budget_bytes // 2 for end in ends)]


def _nothing(*_args: Any) -> None:
    """Take no note."""


def _no_warning_of_global_hooks() -> Callable[[], None]:
    """Ignore what torch.compile says of hooks like ours; return what ends that.

    They are called once more for the module around a compiled one, which announces nothing.
    """
    warnings.filterwarnings(
        "ignore", r"Using `torch\.compile\(module\)` when there are global hooks", UserWarning
    )
    ours = warnings.filters[0]

    def end() -> None:
        if isinstance(warnings.filters, list) and ours in warnings.filters:
            warnings.filters.remove(ours)

    return end


def _with_gradients(parameters: Iterable[torch.Tensor | None]) -> list[torch.Tensor] | None:
    """Return those that have gradients already, which a backward pass adds to; None for none."""
    found = [one for one in parameters if one is not None and one.grad is not None]
    return found or None


def _gradients(adds_to: list[torch.Tensor] | None) -> list[torch.Tensor]:
    """Return the gradients of parameters, the first time only."""
    if not adds_to:
        return []
    found = [one.grad for one in adds_to if one.grad is not None]
    adds_to.clear()
    return found


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
            yield from _tensors_in(optimizer.state.get(parameter, {}))


def _tensors_in(state: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of an optimiser's state: some keep lists of them."""
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, Mapping):
        yield from chain.from_iterable(map(_tensors_in, state.values()))
    elif isinstance(state, list | tuple):
        yield from chain.from_iterable(map(_tensors_in, state))

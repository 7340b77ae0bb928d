# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of torch's optimisers in parts, each of which fits in the budget.

Torch updates all parameters together, one operation after the other, and keeps what it computes on
the way of all of them. Where that does not fit, each operation brings in everything once more. What
happens to a parameter does not depend on the others, so the results of parts are the same to the
bit, and everything comes in once.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import _default_to_fused_or_foreach

__all__ = ["is_served", "serve_steps"]

_WHOLE_FRACTION = 7 / 8  # of the budget, that a step may use and is taken as a whole
_PART_FRACTION = 1 / 16

_Tensors = list[torch.Tensor]

# Modules, and functions in them of the same name, that steps call.
_UPDATES = (
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
)


def serve_steps(
    budget_bytes: int,
    are_ours: Callable[[_Tensors], bool],
    before_part: Callable[[_Tensors], None],
    is_untold: Callable[[], bool],
) -> Callable[[], None]:
    """Have steps of torch's own optimisers taken in parts where they do not fit.

    Parameters
    ----------
    budget_bytes : int
        What fits.
    are_ours : callable
        Whether any of these parameters is in memory that the budget is for.
    before_part : callable
        Takes the tensors that are used next, of a part; it is not called for steps that fit.
    is_untold : callable
        Whether it has to be called, since nothing was announced of the step that is under way.

    Returns
    -------
    callable
        Ends that. Wrappers of others, made before or after, stay in place.
    """
    undo = [_wrap(name, budget_bytes, are_ours, before_part, is_untold) for name in _UPDATES]

    def end() -> None:
        while undo:
            undo.pop()()

    return end


def is_served(optimizer: torch.optim.Optimizer) -> bool:
    """Whether its step is one of those that are taken in parts.

    Examples
    --------
    >>> is_served(torch.optim.AdamW([torch.ones(1)])), is_served(torch.optim.LBFGS([torch.ones(1)]))
    (True, False)
    """
    step = inspect.unwrap(type(optimizer).step)
    return step.__module__ in {f"torch.optim.{name}" for name in _UPDATES}


def _wrap(
    name: str,
    budget_bytes: int,
    are_ours: Callable[[_Tensors], bool],
    before_part: Callable[[_Tensors], None],
    is_untold: Callable[[], bool],
) -> Callable[[], None]:
    module = importlib.import_module(f"torch.optim.{name}")
    theirs = getattr(module, name)
    is_ended = False

    @functools.wraps(theirs)
    def update(params: _Tensors, *args: Any, **kwargs: Any) -> None:
        may_part = (
            not (is_ended or torch.compiler.is_compiling())
            and not any(_is_parallel(each, params) for each in kwargs.values())
            and are_ours(params)
        )
        ends = _ends(params, args, budget_bytes) if may_part else []
        if may_part and not ends and is_untold():
            ends = [len(params)]
        if not ends:
            theirs(params, *args, **kwargs)
            return
        lists = [each for each in args if _is_parallel(each, params)]
        begin = 0
        is_open = kwargs.get("foreach") is None and not kwargs.get("fused")
        if is_open and not _default_to_fused_or_foreach(params, differentiable=False)[1]:
            # Torch would choose again for each part, and other kernels where it can.
            kwargs = {**kwargs, "foreach": False}
        for end in ends:
            part = slice(begin, end)
            before_part([one for each in (params, *lists) for one in each[part] if one is not None])
            own = [each[part] if _is_parallel(each, params) else each for each in args]
            theirs(params[part], *own, **kwargs)
            for each, its in zip(args, own, strict=True):
                if its is not each:
                    each[part] = its  # a first momentum is put there by the step
            begin = end

    setattr(module, name, update)

    def unwrap() -> None:
        nonlocal is_ended
        is_ended = True
        if getattr(module, name) is update:  # else somebody's after ours, which comes to it
            setattr(module, name, theirs)

    return unwrap


def _is_parallel(value: Any, params: _Tensors) -> bool:
    """Whether an argument has one entry for each parameter."""
    return isinstance(value, list) and len(value) == len(params)


def _ends(params: _Tensors, args: tuple[Any, ...], budget_bytes: int) -> list[int]:
    """Return how many parameters come before the end of each part; nothing for a step that fits."""
    lists = [params, params, *(each for each in args if _is_parallel(each, params))]  # with results
    used_bytes = [sum(map(_bytes_of, of_one)) for of_one in zip(*lists, strict=True)]
    if sum(used_bytes) <= budget_bytes * _WHOLE_FRACTION:
        return []
    ends, taken = [], 0
    for number, nbytes in enumerate(used_bytes):
        if taken and taken + nbytes > budget_bytes * _PART_FRACTION:
            ends.append(number)
            taken = 0
        taken += nbytes
    return [*ends, len(used_bytes)]


def _bytes_of(tensor: torch.Tensor | None) -> int:
    """Return the bytes of a tensor; torch has none of those that are sparse."""
    if tensor is None:
        return 0
    if tensor.is_sparse:
        return int(tensor._values().nbytes + tensor._indices().nbytes)
    return int(tensor.nbytes)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Follows every operator of a torch program: what it allocates, uses and computes.

Operators are seen where torch dispatches them, below autograd: forward, backward and optimisers
alike. What one operator of the CPU allocates and frees inside itself is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rmm_uvm.planner.trials.uses import Receiver, Use
from rmm_uvm.torch.shadow.roofline import Roofline, operations_of
from rmm_uvm.torch.shadow.uses import Storages, use_of

__all__ = ["ShadowMode"]

_MAKES_ROOM_ONLY = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided")
_READS_FOR_THE_HOST = ("_local_scalar_dense", "equal")
# Of lists of tensors. A GPU launches many kernels for one, each for some of the list.
_OF_LISTS = ("_foreach_", "_fused_", "_amp_foreach_")


class ShadowMode(TorchDispatchMode):
    """Tells a receiver of everything that a program does while this mode is entered.

    Parameters
    ----------
    receiver : Receiver
        Who is told.
    roofline : Roofline
        How long kernels take.

    Notes
    -----
    Of the thread that entered it, as all modes of torch are, and of no other; autograd runs
    backward there too when tensors are on the CPU.
    """

    def __init__(self, receiver: Receiver, roofline: Roofline) -> None:
        super().__init__()
        self._receiver = receiver
        self._roofline = roofline
        self._storages = Storages(receiver)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Let torch do it, and shadow it."""
        del types
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self._storages.give_back_the_dead()
        name = func.overloadpacket.__name__
        if name.startswith(_OF_LISTS):
            for one_args, one_result in _one_by_one(args, result):
                self._shadow(func, name, one_args, kwargs, one_result)
        else:
            self._shadow(func, name, args, kwargs, result)
        return result

    def settle(self) -> None:
        """Give back what died since the last operator."""
        self._storages.give_back_the_dead()

    def close(self) -> None:
        """Give everything back; tensors that live on are no business of this mode any more."""
        self._storages.close()

    def _shadow(
        self, func: Any, name: str, args: Any, kwargs: Mapping[str, Any], result: Any
    ) -> None:
        outputs = _tensors(result)
        if not outputs and not _writes_something(func) and name not in _READS_FOR_THE_HOST:
            return  # asks for a shape or the like
        uses: dict[int, Use] = {}
        written = [id(one) for one in _written(func, args, kwargs)]
        inputs = _tensors((args, kwargs))
        for tensor in inputs:
            if (found := use_of(tensor, self._storages)) is None:
                continue
            use, new = found
            if new:  # made before this mode was entered
                whole_bytes = tensor.untyped_storage().nbytes()
                self._receiver.given(use._replace(first_byte=0, nbytes=whole_bytes, writes=True))
            _add(uses, use._replace(writes=id(tensor) in written))
        made = False
        for tensor in outputs:
            if (found := use_of(tensor, self._storages)) is None:
                continue
            use, new = found
            if new or use.allocation not in uses:
                made = True
                _add(uses, use._replace(writes=True, fresh=new))
        kernel = made or bool(written) or not outputs
        if not kernel or not uses or name in _MAKES_ROOM_ONLY:
            return
        listed = tuple(uses.values())
        self._receiver.kernel(listed, self._seconds(func, name, args, kwargs, result, listed))

    def _seconds(
        self,
        func: Any,
        name: str,
        args: Any,
        kwargs: Mapping[str, Any],
        result: Any,
        uses: Sequence[Use],
    ) -> float:
        nbytes = sum(use.nbytes for use in uses)
        operations = 0 if name.startswith(_OF_LISTS) else operations_of(func, args, kwargs, result)
        if not operations:
            return self._roofline.seconds(nbytes)
        element_bytes = min(one.element_size() for one in _tensors(args) if one.is_floating_point())
        peak_flops = self._roofline.peak_of(name, element_bytes)
        return self._roofline.seconds(nbytes, operations, peak_flops)


def _tensors(tree: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _add(uses: dict[int, Use], use: Use) -> None:
    """Add a use; several of one allocation become one, from the first byte to the last."""
    known = uses.get(use.allocation)
    if known is None:
        uses[use.allocation] = use
        return
    first = min(known.first_byte, use.first_byte)
    end = max(known.first_byte + known.nbytes, use.first_byte + use.nbytes)
    uses[use.allocation] = Use(
        use.allocation, first, end - first, known.writes or use.writes, known.fresh or use.fresh
    )


def _writes_something(func: Any) -> bool:
    return bool(func._schema.is_mutable)


def _written(func: Any, args: Any, kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the tensors among the arguments that the operator writes."""
    if not _writes_something(func):
        return []
    values = [
        args[number] if number < len(args) else kwargs.get(argument.name)
        for number, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return _tensors(values)


def _one_by_one(args: Any, result: Any) -> Iterator[tuple[Any, Any]]:
    """Yield arguments and result of an operator on lists, for each place in the lists."""
    count = max((len(one) for one in args if isinstance(one, list | tuple)), default=0)

    def at(value: Any, number: int) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return [value[number]] if number < len(value) else []

    for number in range(count):
        yield [at(one, number) for one in args], at(result, number)

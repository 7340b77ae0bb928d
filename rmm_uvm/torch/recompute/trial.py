# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a module may be run again: what it is, what its call changes, and whether it repeats.

A call may be run again if nothing can tell that it was: it changes nothing of Python's that is in
sight, its random numbers are drawn again, what it changes in its buffers is put back, and what it
returns is the same to the bit.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import saved_tensors_hooks

__all__ = [
    *("Before", "Verdict", "arguments_in", "copied", "signature_of", "structure_of"),
    *("tried", "why_not"),
]

_LARGE_BYTES = 1 << 20  # of a buffer: what may be changed and put back is smaller
_PLAIN = (int, float, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size, slice)
_HOOKS = (
    *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
    "_compiled_call_impl",
)
_OF_TORCH = ("_parameters", "_buffers", "_modules")  # what is in them is looked at by itself


class _NotPlainError(Exception):
    """An argument is something that may change, and is no tensor."""


def arguments_in(args: Any, kwargs: Any) -> list[torch.Tensor] | None:
    """Return the tensors among arguments; None where something else is there that may change."""
    try:
        return list(_tensors((args, kwargs)))
    except _NotPlainError:
        return None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        yield value
    elif kind is tuple or kind is list:
        for each in value:
            yield from _tensors(each)
    elif kind is dict:
        for each in value.values():
            yield from _tensors(each)
    elif not isinstance(value, _PLAIN):
        raise _NotPlainError


def copied(value: Any) -> Any:
    """Return arguments in containers of their own: the caller may go on filling its lists.

    Examples
    --------
    >>> given = ([1], {"a": [2]})
    >>> found = copied(given)
    >>> given[0].append(3)
    >>> found
    ([1], {'a': [2]})
    """
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(copied(each) for each in value)
    if kind is dict:
        return {key: copied(each) for key, each in value.items()}
    return value


def signature_of(tensors: Iterable[torch.Tensor]) -> tuple[Any, ...]:
    """Return what calls have in common that compute on tensors of the same shapes."""
    return tuple((each.shape, each.dtype, each.requires_grad) for each in tensors)


def structure_of(module: torch.nn.Module) -> tuple[Any, ...]:
    """Return what modules have in common that do the same: classes, sizes, settings."""
    return tuple(
        (
            type(each),
            tuple((name, _shape(one)) for name, one in each._parameters.items()),
            tuple((name, _shape(one)) for name, one in each._buffers.items()),
            tuple((key, value) for key, value in vars(each).items() if isinstance(value, _PLAIN)),
        )
        for each in module.modules()
    )


def _shape(tensor: torch.Tensor | None) -> tuple[int, ...] | None:
    return None if tensor is None else tuple(tensor.shape)


def why_not(module: torch.nn.Module) -> str:
    """Return why a module is never run again; empty if it may be."""
    for each in module.modules():
        kind = type(each)
        if kind.__module__.startswith(("torch.distributed", "torch.nn.parallel")):
            return "a module in it works with other processes"
        is_compiled = isinstance(each, torch.jit.ScriptModule) or kind.__name__ == "OptimizedModule"
        if is_compiled or any(vars(each).get(name) for name in _HOOKS):
            return "a module in it has hooks, or is compiled"
    return ""


class _Randomness(NamedTuple):
    """The states of generators."""

    of_torch: tuple[torch.Tensor, ...]
    of_python: Any

    @staticmethod
    def now(device: torch.device) -> _Randomness:
        states = [torch.get_rng_state()]
        if device.type == "cuda":
            states.append(torch.cuda.get_rng_state(device))
        numpy = sys.modules.get("numpy")
        of_numpy = None if numpy is None else numpy.random.get_state()[1].tobytes()
        return _Randomness(tuple(states), (random.getstate(), of_numpy))

    def restore(self, device: torch.device) -> None:
        torch.set_rng_state(self.of_torch[0])
        if device.type == "cuda":
            torch.cuda.set_rng_state(self.of_torch[1], device)


class Before:
    """What could be seen of a module and its arguments before a call.

    Parameters
    ----------
    module : torch.nn.Module
        About to be called.
    arguments : tuple
        Its arguments; of nothing but tensors and what does not change.
    device : torch.device
        Of random numbers.
    """

    def __init__(
        self, module: torch.nn.Module, arguments: tuple[Any, Any], device: torch.device
    ) -> None:
        self._module, self._arguments, self._device = module, arguments, device
        self._given = self._versions()
        self._attributes = _attributes(module)
        self.random = _Randomness.now(device)
        self.buffers = {name: one.clone() for name, one in _small(module, device).items()}
        self._sums = _sums_of_large(module, device)

    def _versions(self) -> list[tuple[int, int]]:
        return [(id(each), each._version) for each in arguments_in(*self._arguments) or ()]

    def changed(self) -> str:
        """Return what the call changed for which it cannot be run again; empty for nothing."""
        if self._versions() != self._given:
            return "it changes its arguments"
        if _attributes(self._module) != self._attributes:
            return "it changes its attributes"
        if _Randomness.now(self._device).of_python != self.random.of_python:
            return "it draws random numbers of Python's or NumPy's"
        if _sums_of_large(self._module, self._device) != self._sums:
            return "it changes a large buffer"
        return ""


def _small(module: torch.nn.Module, device: torch.device) -> dict[str, torch.Tensor]:
    """Return the buffers that may be changed and put back, by name."""
    return {
        name: one
        for name, one in module.named_buffers()
        if one.nbytes <= _LARGE_BYTES and one.device == device
    }


def _sums_of_large(module: torch.nn.Module, device: torch.device) -> list[tuple[int, int]]:
    """Return the version and a sum of the bits of each other buffer."""
    small = _small(module, device)
    return [
        (one._version, int(_bytes_of(one).sum(dtype=torch.int64)))
        for name, one in module.named_buffers()
        if name not in small
    ]


def _attributes(module: torch.nn.Module) -> list[Any]:
    """Return what is told of each attribute: which object it is, and how many are in it."""
    found: list[Any] = []
    for each in module.modules():
        for name, value in vars(each).items():
            if name in _OF_TORCH:
                found += [(name, key, id(one)) for key, one in value.items()]
            else:
                size = len(value) if isinstance(value, list | dict | set | Mapping) else 0
                version = value._version if isinstance(value, torch.Tensor) else 0
                found.append((name, id(value), size, version))
    return found


@dataclass(frozen=True)
class Verdict:
    """What came of a trial.

    Parameters
    ----------
    refusal : str
        Why modules like this one are not run again; empty if they may be.
    seconds : float
        How long it took to run again.
    is_random : bool
        Whether it draws random numbers of torch's.
    changing : tuple of str
        Names of the buffers that a call changes.
    needs_buffers : bool
        Whether what it returns depends on them, so that they have to be as they were.
    """

    refusal: str = ""
    seconds: float = 0.0
    is_random: bool = False
    changing: tuple[str, ...] = ()
    needs_buffers: bool = False


def tried(
    call: Callable[[], Any],
    module: torch.nn.Module,
    before: Before,
    outputs: Any,
    clock: Callable[[], Callable[[], float]],
    device: torch.device,
) -> Verdict:
    """Run a module again right after its call, which leaves everything as that did.

    Parameters
    ----------
    call : callable
        Calls it with the same arguments.
    module : torch.nn.Module
        Which one.
    before : Before
        Taken before the call.
    outputs : object
        What the call returned.
    clock : callable
        Begins to measure; what it returns ends that, and returns seconds.
    device : torch.device
        Of random numbers.
    """
    refusal = before.changed()
    expected = arguments_in(outputs, ())
    if expected is None:
        refusal = refusal or "it returns something else than tensors"
    if refusal:
        return Verdict(refusal)
    assert expected is not None
    after = _Randomness.now(device)
    there = _small(module, device)
    then = {name: one.clone() for name, one in there.items()}
    changing = tuple(name for name in then if not _same(then[name], before.buffers[name]))

    def repeats() -> tuple[bool, float]:
        before.random.restore(device)
        # Nothing of it is kept: what is to come after it is thrown away.
        with saved_tensors_hooks(_nothing, _nothing):
            ended = clock()
            found = arguments_in(call(), ())
            seconds = ended()
        is_same = found is not None and len(found) == len(expected)
        return is_same and all(map(_same, found or (), expected)), seconds

    needs_buffers = False
    try:
        is_same, seconds = repeats()
        if not is_same and changing:
            needs_buffers = True
            for name in changing:
                there[name].data.copy_(before.buffers[name])
            is_same, seconds = repeats()
            is_same &= all(_same(there[name], then[name]) for name in changing)
        refusal = before.changed()
    finally:
        after.restore(device)
        for name in changing:
            there[name].data.copy_(then[name])
    if not is_same:
        refusal = refusal or "it does not return the same again"
    is_random = not all(map(torch.equal, before.random.of_torch, after.of_torch))
    return Verdict(refusal, seconds, is_random, changing, needs_buffers)


def _nothing(_kept: Any) -> None:
    """Keep nothing."""


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same to the bit; a NaN is."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    is_same: bool = torch.equal(_bytes_of(one), _bytes_of(other))
    return is_same


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8)

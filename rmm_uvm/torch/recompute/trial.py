# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a module may be run again: what it is, what its call changes, and whether it repeats.

A call may be run again if nothing can tell that it was: it changes nothing of Python's that is in
sight, its random numbers are drawn again, what it changes in its buffers is put back, and what it
returns is the same to the bit.
"""

from __future__ import annotations

import pickle
import random
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.parameter import is_lazy

from rmm_uvm.torch.activations.saved_tensors import version_of

__all__ = [
    *("Before", "Structure", "Verdict", "arguments_in", "emptied", "filled"),
    *("signature_of", "structure_of", "tried", "why_not"),
]

_LARGE_BYTES = 1 << 20  # of a buffer: what may be changed and put back is smaller
_PLAIN = (int, float, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size, slice)
_MEMBERS = ("_parameters", "_buffers", "_modules")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(
    getattr(torch.nn.modules.module, name)
    for name in (
        *("_global_forward_pre_hooks", "_global_forward_hooks"),
        *("_global_backward_pre_hooks", "_global_backward_hooks"),
    )
)
_OURS = __name__.partition(".")[0]
_DEPTH = 6  # of containers and objects in each other that are looked into


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


class _Place(NamedTuple):
    """Stands for a tensor among arguments."""

    number: int


def emptied(value: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """Return arguments in containers of their own, without tensors: see `filled`.

    Parameters stay: their modules keep them.

    Parameters
    ----------
    value : object
        The arguments.
    tensors : sequence of torch.Tensor
        Those in them, each once: a module may ask whether two arguments are the same one.
    """
    numbers = {id(each): _Place(number) for number, each in enumerate(tensors)}

    def without(value: Any) -> Any:
        kind = type(value)
        if kind is torch.Tensor:
            return numbers[id(value)]
        if kind is tuple or kind is list:
            return kind(map(without, value))
        if kind is dict:
            return {key: without(each) for key, each in value.items()}
        return value

    return without(value)


def filled(value: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """Return arguments again, with tensors in the order that `emptied` was given.

    Examples
    --------
    >>> one = torch.ones(1)
    >>> filled(emptied(([one], {"a": 2, "b": one}), [one]), [torch.zeros(1)])
    ([tensor([0.])], {'a': 2, 'b': tensor([0.])})
    """
    kind = type(value)
    if kind is _Place:
        return tensors[value.number]
    if kind is tuple or kind is list:
        return kind(filled(each, tensors) for each in value)
    if kind is dict:
        return {key: filled(each, tensors) for key, each in value.items()}
    return value


def signature_of(value: Any) -> Any:
    """Return what calls have in common whose arguments differ in the tensors' values only.

    Examples
    --------
    >>> given = ((torch.ones(2), True), {})
    >>> signature_of(given) == signature_of(((torch.zeros(2), True), {}))
    True
    >>> signature_of(given) == signature_of(((torch.ones(2), False), {}))
    False
    """
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return value.shape, value.dtype, value.requires_grad
    if kind is tuple or kind is list:
        return (kind, *map(signature_of, value))
    if kind is dict:
        return (kind, *((key, signature_of(each)) for key, each in value.items()))
    return kind, repr(value)  # not every kind has a hash


def structure_of(module: torch.nn.Module) -> tuple[Any, ...]:
    """Return what modules have in common that do the same: classes, sizes, settings."""
    modules = list(module.modules())
    numbers = {id(each): number for number, each in enumerate(modules)}
    return tuple(
        (
            type(each),
            tuple((name, numbers.get(id(one))) for name, one in each._modules.items()),
            tuple((name, _shape(one)) for name, one in each._parameters.items()),
            tuple((name, _shape(one)) for name, one in each._buffers.items()),
            tuple(
                (key, value if type(value) is not slice else repr(value))
                for key, value in vars(each).items()
                if isinstance(value, _PLAIN)
            ),
            tuple(id(value) for value in vars(each).values() if isinstance(value, FunctionType)),
        )
        for each in modules
    )


def _shape(tensor: torch.Tensor | None) -> tuple[int, ...] | None:
    return None if tensor is None or is_lazy(tensor) else tensor.shape


class Structure:
    """The structure of a module when it was seen; tells quickly that it is still so.

    Parameters
    ----------
    whole : tuple
        What `structure_of` said of it.
    """

    def __init__(self, whole: tuple[Any, ...]) -> None:
        self._whole = whole
        self._modules: list[weakref.ref[torch.nn.Module]] = []
        self._ids: list[int] | None = None  # not seen yet
        self._seen_shapes: list[tuple[torch.Size, bool]] = []
        self._plain: list[Any] = []

    def is_of(self, module: torch.nn.Module) -> bool:
        """Whether the module is as it was, and may be run again."""
        if self._parts() == self._ids and self._shapes() == self._seen_shapes:
            return not _are_others_hooks_there()
        if structure_of(module) != self._whole or why_not(module):
            return False
        self._see(module)
        return True

    def modules(self) -> list[torch.nn.Module]:
        """Return what `torch.nn.Module.modules` does of a module that was asked for just now."""
        return [each for one in self._modules if (each := one()) is not None]

    def _see(self, module: torch.nn.Module) -> None:
        self._modules = [weakref.ref(each) for each in module.modules()]
        self._ids, self._seen_shapes = self._parts(), self._shapes()
        # While these are kept, nothing else gets their identity.
        self._plain = [
            value
            for each in module.modules()
            for value in vars(each).values()
            if isinstance(value, _PLAIN)
        ]

    def _parts(self) -> list[int]:
        """Return the identity of all that modules hold, and how many hooks they have."""
        found: list[Any] = []
        counts: list[int] = []
        for reference in self._modules:
            module = reference()
            if module is None:
                return []
            its = vars(module)
            found += its.values()
            for name in _MEMBERS:
                found += its[name].values()
            counts += [len(its[name]) for name in _HOOKS]
        return [*map(id, found), *counts]

    def _shapes(self) -> list[tuple[torch.Size, bool]]:
        return [
            (one.shape, _has_hooks(one))
            for reference in self._modules
            if (module := reference()) is not None
            for one in module._parameters.values()
            if one is not None and not is_lazy(one)
        ]


def _are_others_hooks_there() -> bool:
    """Whether the program has hooks of all modules."""
    hooks = chain.from_iterable(each.values() for each in _GLOBAL_HOOKS)
    return not all(str(getattr(each, "__module__", "")).startswith(_OURS) for each in hooks)


def why_not(module: torch.nn.Module) -> str:
    """Return why a module is not run again; empty if it may be."""
    if _are_others_hooks_there():
        return "there are hooks of all modules"
    for each in module.modules():
        kind, its = type(each), vars(each)
        parts = (kind, *map(type, each._parameters.values()))
        if kind is torch.nn.SyncBatchNorm or any(
            part.__module__.startswith(("torch.distributed", "torch.nn.parallel")) for part in parts
        ):
            return "a module in it works with other processes"
        if isinstance(each, torch.nn.RNNBase) and each.dropout:
            return "a module in it has random numbers of cuDNN's"
        is_compiled = (
            isinstance(each, torch.jit.ScriptModule)
            or kind.__name__ == "OptimizedModule"
            or its.get("_compiled_call_impl")
        )
        if is_compiled or "forward" in its or any(its.get(name) for name in _HOOKS):
            return "a module in it has hooks, or is compiled"
        if not all(one is None or _is_dense(one) for one in each._buffers.values()):
            return "a module in it has a buffer that is not dense"
        if any(one is not None and _has_hooks(one) for one in each._parameters.values()):
            return "a parameter in it has hooks that may change it in the backward pass"
    return ""


def _has_hooks(parameter: torch.Tensor) -> bool:
    """Whether the program is called once its gradient is there, as for steps of optimisers."""
    return bool(getattr(parameter, "_post_accumulate_grad_hooks", None))


def _is_dense(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_nested)
        and not is_lazy(tensor)
    )


class _Randomness(NamedTuple):
    """The states of generators."""

    of_torch: tuple[torch.Tensor, ...]
    of_python: Any

    @staticmethod
    def now(device: torch.device) -> _Randomness:
        states = [torch.get_rng_state()]
        if device.type == "cuda":
            states.append(torch.cuda.get_rng_state(device))
        numpy = sys.modules.get("numpy.random")
        of_numpy = None if numpy is None else pickle.dumps(numpy.get_state())
        return _Randomness(tuple(states), (random.getstate(), of_numpy))

    def restore(self, device: torch.device) -> None:
        torch.set_rng_state(self.of_torch[0])
        if device.type == "cuda":
            torch.cuda.set_rng_state(self.of_torch[1], device)


class Before:
    """The state of a module and its arguments before a call, as far as it can be seen.

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
        small = _small(module, device)
        self.buffers = {name: one.clone() for name, one in small.items()}
        self.versions = {name: version_of(one) for name, one in small.items()}
        self._sums = _sums_of_large(module, device)

    def _versions(self) -> list[Any]:
        return [_told_of(each, 0) for each in arguments_in(*self._arguments) or ()]

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
        (version_of(one), int(_bytes_of(one).sum(dtype=torch.int64)))
        for name, one in module.named_buffers()
        if name not in small
    ]


def _attributes(module: torch.nn.Module) -> list[Any]:
    """Return what is told of each attribute: which object it is, and what is in it."""
    seen: set[int] = set()
    return [
        (name, [*map(id, value.values())] if name == "_buffers" else _told_of(value, _DEPTH, seen))
        for each in module.modules()
        for name, value in vars(each).items()
    ]


def _told_of(value: Any, depth: int, seen: set[int] | None = None) -> Any:
    """Return what is other than before once somebody changed a value, as far as can be seen."""
    if isinstance(value, torch.Tensor):
        hooks = [value._backward_hooks, getattr(value, "_post_accumulate_grad_hooks", None)]
        grad = value.grad if value.is_leaf else None  # torch warns of others
        counts = [len(each or ()) for each in hooks]
        return id(value), version_of(value), counts, None if grad is None else _told_of(grad, 0)
    if isinstance(value, _PLAIN):
        return value
    seen = set() if seen is None else seen
    if depth == 0 or id(value) in seen or isinstance(value, torch.nn.Module | type | FunctionType):
        return id(value)
    seen.add(id(value))
    inside: Any = None
    if isinstance(value, Mapping):
        inside = [(id(key), _told_of(each, depth - 1, seen)) for key, each in value.items()]
    elif isinstance(value, list | tuple | set | frozenset | deque):
        inside = [_told_of(each, depth - 1, seen) for each in value]
    elif isinstance(value, torch.Generator):
        inside = value.get_state().tolist()
    elif hasattr(value, "__dict__") and not isinstance(value, random.Random):
        inside = _told_of(vars(value), depth - 1, seen)
    elif getattr(value, "nbytes", 0) <= _LARGE_BYTES:  # an array, or what draws random numbers
        try:
            inside = pickle.dumps(value)
        except Exception:
            inside = None
    return id(value), inside


@dataclass(frozen=True)
class Verdict:
    """The result of a trial.

    Parameters
    ----------
    refusal : str
        Why modules like this one are not run again; empty if they may be.
    seconds : float
        How long it took to run again.
    changing : tuple of str
        Names of the buffers that a call changes.
    needs_buffers : bool
        Whether what it computes may depend on them, so that they have to be as they were.
    """

    refusal: str = ""
    seconds: float = 0.0
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
    if expected is None or not all(map(_is_dense, expected)):
        refusal = refusal or "it returns something else than tensors"
    if refusal:
        return Verdict(refusal)
    assert expected is not None
    after = _Randomness.now(device)
    there = _small(module, device)
    then = {name: one.clone() for name, one in there.items()}
    changing = tuple(
        name
        for name, one in there.items()
        if version_of(one) != before.versions[name] or not _same(one, before.buffers[name])
    )

    def repeats() -> tuple[bool, float]:
        before.random.restore(device)
        # Nothing of it is kept: what is to come after it is thrown away.
        with saved_tensors_hooks(_nothing, _nothing):
            ended = clock()
            found = arguments_in(call(), ())
            seconds = ended()
        is_same = found is not None and len(found) == len(expected)
        return is_same and all(map(_same, found or (), expected)), seconds

    # That it returns the same now says little of a counter, or of a largest value until now.
    needs_buffers = not all(_is_statistic_of_norm(module, name) for name in changing)
    try:
        if not needs_buffers:
            is_same, seconds = repeats()
            needs_buffers = not is_same and bool(changing)
        if needs_buffers:
            for name in changing:
                there[name].data.copy_(before.buffers[name])
            is_same, seconds = repeats()
            is_same &= all(_same(there[name], then[name]) for name in changing)
        refusal = before.changed()
    except Exception:
        is_same, seconds, refusal = False, 0.0, "it fails when it is run again"
    finally:
        after.restore(device)
        for name in changing:
            there[name].data.copy_(then[name])
    if not is_same:
        refusal = refusal or "it does not return the same again"
    return Verdict(refusal, seconds, changing, needs_buffers)


def _is_statistic_of_norm(module: torch.nn.Module, name: str) -> bool:
    """Whether a buffer belongs to a norm of torch's own: what changes it does not depend on it."""
    owner = module.get_submodule(name.rpartition(".")[0])
    kind = type(owner)
    return issubclass(kind, _NormBase) and kind.__module__.startswith("torch.nn.modules.")


def _nothing(_kept: Any) -> None:
    """Keep nothing."""


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same to the bit; a NaN is."""
    if one.shape != other.shape or one.dtype != other.dtype or not _is_dense(one):
        return False
    is_same: bool = torch.equal(_bytes_of(one), _bytes_of(other))
    return is_same


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg().reshape(-1).view(torch.uint8)

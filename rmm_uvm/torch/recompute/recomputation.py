# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs modules again in the backward pass, where that is cheaper than to move what they kept.

In one forward pass past the budget it is noted what autograd keeps of each call, and one call of
each kind is tried: it is run twice (see `trial`). Then calls are chosen that spare what does not
fit. Of those, torch's checkpointing keeps the arguments only.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from rmm_uvm.torch.activations.leaving import is_parameter
from rmm_uvm.torch.activations.saved_tensors import are_of_others, changed, version_of
from rmm_uvm.torch.recompute.choice import ModuleCall, chosen
from rmm_uvm.torch.recompute.trial import (
    Before,
    Structure,
    Verdict,
    arguments_in,
    emptied,
    filled,
    signature_of,
    structure_of,
    tried,
    why_not,
)

__all__ = ["Recomputation", "cuda_clock"]

_MOST_TRIED_FRACTION = 1 / 8  # of the budget, kept by a call that is tried
_LEAST_TRIED_FRACTION = 1 / 512  # of what is needed
_SHORT_ROUNDS = 3  # in a row, until more is run again: torch puts things elsewhere meanwhile
_MOST_CALLS = 20_000  # in one pass: more were made without a backward pass
_MORE_FRACTION = 1 / 16  # of the budget, that is asked for more
_MOST_MORE_FRACTION = 1 / 4  # of it, in all
_CALL_SECONDS = 1e-4  # of the host, for what torch does around a call that is run again
_FIRST_PAUSE = 16  # rounds, until one is looked at again; twice as many each time

_Original = Callable[..., Any]


def cuda_clock() -> Callable[[], float]:
    """Begin to measure the time of what is given to the current stream; see `tried`."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()

    def ended() -> float:
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000

    return ended


@dataclass
class _NotedCall:
    """A call of the round that is looked at."""

    module: weakref.ref[torch.nn.Module]
    number_of_module: int  # how many of its calls came before
    structure: tuple[Any, ...]
    signature: Any
    end: int = 0
    kept: dict[int, int] = field(default_factory=dict)  # bytes, by storage
    kept_until_bytes: int = 0  # of the whole pass, when it ended
    spared_bytes: int = 0
    verdict: Verdict | None = None


@dataclass
class _Region:
    """A module of which calls are run again."""

    module: weakref.ref[torch.nn.Module]
    structure: Structure
    signature: Any
    verdict: Verdict
    calls_of_pass: int
    numbers: set[int]  # which of those
    places: list[tuple[int, str]]  # of buffers that a call changes
    calls: int = 0


class _ForwardPass:
    """Takes notes of one forward pass."""

    def __init__(self) -> None:
        self.thread: int | None = None  # the one that makes the first call
        self.calls: list[_NotedCall] = []
        self.under_way: list[_NotedCall] = []
        self.seen: set[int] = set()  # storages that autograd kept
        self.kept_bytes = 0
        self.calls_of: dict[int, int] = {}  # by module
        # With their versions: what may be changed until the backward pass begins.
        self.arguments: list[tuple[_NotedCall, list[torch.Tensor], list[int]]] = []
        self.buffers: list[tuple[_NotedCall, list[torch.Tensor], list[int]]] = []
        self.left: set[int] = set()  # of those, what left as copies
        self.held_bytes = 0  # of arguments that would have been free


class Recomputation:
    """Chooses calls of modules and runs them again, between `begin` and `end`. Thread-safe.

    Parameters
    ----------
    device : torch.device
        Whose memory does not suffice.
    budget_bytes : int
        What fits.
    clock : callable
        See `rmm_uvm.torch.recompute.trial.tried`.
    seconds_of_copies : callable
        Returns how long it takes to copy one byte to the host and back.
    are_hooks_of_others : callable
        Whether the program has hooks for what autograd keeps: then nothing is run again.
    """

    def __init__(
        self,
        device: torch.device,
        budget_bytes: int,
        clock: Callable[[], Callable[[], float]] = cuda_clock,
        seconds_of_copies: Callable[[], float] = lambda: math.inf,
        are_hooks_of_others: Callable[[], bool] = are_of_others,
    ) -> None:
        self._are_hooks_of_others = are_hooks_of_others
        self._seconds_of_copies = seconds_of_copies
        self._device, self._clock = device, clock
        self._budget_bytes = budget_bytes
        self._lock = threading.RLock()
        self._thread = threading.local()  # .trying
        self._regions: dict[int, _Region] = {}  # by module
        self._is_next_looked_at = self._is_new = False
        self._pass: _ForwardPass | None = None  # that is looked at now
        self._looked_at: _ForwardPass | None = None  # the last one that was
        self._verdicts: dict[Any, Verdict] = {}  # by kind of call
        self._spared_bytes = 0
        self._asked_bytes = 0  # to spare, when calls were chosen last
        self._most_asked_bytes = 0
        self._is_fresh = self._is_more_asked = False  # see `keep_less`
        self._needed_bytes = 0  # when a round was to be looked at last
        self._pause, self._rounds_left, self._short_rounds = _FIRST_PAUSE, 0, 0
        self._original: _Original | None = None
        self._ended = False
        self._in_backward = False

    def begin(self) -> None:
        """Look at calls of modules from now on."""
        original = torch.nn.Module._call_impl
        regions, called, is_compiling = self._regions, self._called, torch.compiler.is_compiling

        def _call_impl(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            # First: what torch.compile traces is not to depend on the rest.
            if is_compiling() or not (id(module) in regions or self._pass is not None):
                return original(module, *args, **kwargs)
            return called(original, module, args, kwargs)

        self._original, self._ours = original, _call_impl
        torch.nn.Module._call_impl = _call_impl

    def end(self) -> None:
        """Run nothing again any more, but for graphs that are there."""
        self._ended = True
        self._pass = None
        self._is_next_looked_at = False
        self._regions.clear()
        if torch.nn.Module._call_impl is self._ours and self._original is not None:
            torch.nn.Module._call_impl = self._original

    @property
    def is_looking(self) -> bool:
        """Whether this round is looked at: then autograd's hooks have to be told of all."""
        return self._pass is not None

    @property
    def spared_bytes(self) -> int:
        """How much a round keeps less since calls are run again."""
        return self._spared_bytes

    def statistics(self) -> dict[str, Any]:
        """Return what is run again, and why other modules are not.

        Returns
        -------
        dict
            ``spared_bytes`` of a round, ``modules`` of which calls are run again, ``seconds`` that
            this takes in a round, ``refusals`` (dict): reasons, and how many kinds of modules each
            is for.
        """
        with self._lock:
            refusals: dict[str, int] = {}
            for verdict in self._verdicts.values():
                if verdict.refusal:
                    refusals[verdict.refusal] = refusals.get(verdict.refusal, 0) + 1
            regions = list(self._regions.values())
            return {
                "spared_bytes": self._spared_bytes,
                "modules": len(regions),
                "seconds": sum(each.verdict.seconds * len(each.numbers) for each in regions),
                "refusals": refusals,
            }

    def on_round(self, needed_bytes: int, was_short: bool = True) -> int:  # noqa: FBT001, FBT002
        """Choose for the round that begins.

        Parameters
        ----------
        needed_bytes : int
            That rounds like the last one keep too much.
        was_short : bool
            Whether live memory was evicted in the last one.

        Returns
        -------
        int
            How much less is kept from now on.
        """
        with self._lock:
            if self._ended:
                return 0
            self._in_backward = False
            if self._pass is not None:
                return 0
            if self._is_new:
                self._is_new = False
                assert self._looked_at is not None
                needed_bytes -= self._looked_at.held_bytes
                self._most_asked_bytes = needed_bytes + int(
                    self._budget_bytes * _MOST_MORE_FRACTION
                )
                return self._choose(needed_bytes)
            if self._is_more_asked and self._looked_at is not None:
                self._is_more_asked = False
                return self._choose(self._asked_bytes + int(self._budget_bytes * _MORE_FRACTION))
            self._short_rounds = self._short_rounds + 1 if was_short else 0
            if needed_bytes <= 0 or (self._spared_bytes and self._short_rounds < _SHORT_ROUNDS):
                return 0
            asked_bytes = self._spared_bytes + needed_bytes
            if self._looked_at and asked_bytes > self._asked_bytes:
                return self._choose(asked_bytes)
            if self._rounds_left:
                self._rounds_left -= 1
                return 0
            self._rounds_left, self._pause = self._pause, 2 * self._pause
            self._needed_bytes = needed_bytes
            less, self._spared_bytes, self._asked_bytes = self._spared_bytes, 0, 0
            self._regions.clear()
            self._is_next_looked_at = True
            return -less

    def keep_less(self) -> bool:
        """Choose more from the next round on, up to a quarter of the budget; return whether it is.

        True also where calls were chosen since the last time: it is not known yet what came of it.
        """
        with self._lock:
            if self._is_fresh:
                self._is_fresh = False
                return True
            more_bytes = int(self._budget_bytes * _MORE_FRACTION)
            self._is_more_asked = 0 < self._asked_bytes + more_bytes <= self._most_asked_bytes
            return self._is_more_asked

    def on_backward(self) -> None:
        """Take note that a backward pass begins: arguments of calls must be as they were."""
        if self._in_backward:
            return
        with self._lock:
            self._in_backward = True
            there, self._pass = self._pass, None
            if there is not None:
                for what, all_of_them in (
                    ("arguments", there.arguments),
                    ("buffers", there.buffers),
                ):
                    for noted, tensors, versions in all_of_them:
                        if [version_of(each) for each in tensors] != versions:
                            noted.verdict = Verdict(f"its {what} are changed after its call")
                there.held_bytes = self._held_bytes(there)
                there.arguments.clear()
                there.buffers.clear()
                self._looked_at, self._is_new = there, True
            elif self._is_next_looked_at:  # from its first call on
                self._is_next_looked_at, self._pass = False, _ForwardPass()

    def kept(self, tensor: torch.Tensor, *, leaves: bool = False) -> None:
        """Take note that autograd keeps a tensor, or a copy of it, in a round that is looked at."""
        there = self._pass
        if there is None or not there.under_way or there.thread != threading.get_ident():
            return
        storage = _storage_of(tensor, self._device)
        if storage is None:
            return
        if leaves:
            there.left.add(storage[0])
        if storage[0] in there.seen:
            return
        there.seen.add(storage[0])
        there.kept_bytes += storage[1]
        for noted in there.under_way:
            noted.kept[storage[0]] = storage[1]

    def _held_bytes(self, there: _ForwardPass) -> int:
        storages = {
            _storage_of(each, self._device) for _, tensors, _ in there.arguments for each in tensors
        }
        return sum(
            one[1]
            for one in storages
            if one is not None and (one[0] not in there.seen or one[0] in there.left)
        )

    def _choose(self, needed_bytes: int) -> int:
        """Choose calls that spare so much; return how much more that is than before."""
        there = self._looked_at
        assert there is not None
        seconds_of_copies = self._seconds_of_copies()
        calls = [
            None
            if each.verdict is None
            or each.verdict.refusal
            or each.verdict.seconds > each.spared_bytes * seconds_of_copies
            else ModuleCall(
                each.end,
                each.spared_bytes,
                there.kept_bytes - each.kept_until_bytes,
                each.verdict.seconds + _CALL_SECONDS,
            )
            for each in there.calls
        ]
        regions: dict[int, _Region] = {}
        spared_bytes = 0
        for number in chosen(calls, needed_bytes):
            noted = there.calls[number]
            module = noted.module()
            if module is None:
                continue
            assert noted.verdict is not None
            region = regions.get(id(module))
            if region is None:
                region = regions[id(module)] = _Region(
                    noted.module,
                    Structure(noted.structure),
                    noted.signature,
                    noted.verdict,
                    there.calls_of[id(module)],
                    set(),
                    _places_of(module, noted.verdict.changing),
                )
            region.numbers.add(noted.number_of_module)
            spared_bytes += noted.spared_bytes
        self._asked_bytes = max(needed_bytes, 0)
        self._is_fresh = True
        if spared_bytes <= self._spared_bytes:
            return 0
        more, self._spared_bytes = spared_bytes - self._spared_bytes, spared_bytes
        self._regions.clear()
        self._regions.update(regions)
        return more

    def _called(self, original: _Original, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        if not self._may_look():
            return original(module, *args, **kwargs)
        there, region = self._pass, self._regions.get(id(module))
        if there is not None and there.thread in (None, threading.get_ident()):
            there.thread = threading.get_ident()
            return self._noted(there, original, module, args, kwargs)
        if region is None or region.module() is not module:
            return original(module, *args, **kwargs)
        number, region.calls = region.calls, (region.calls + 1) % region.calls_of_pass
        tensors = arguments_in(args, kwargs)
        if (
            number not in region.numbers
            or tensors is None
            or any(each.is_inference() for each in tensors)  # autograd keeps none of those
            or self._are_hooks_of_others()  # those would not see what is kept within
            or signature_of((args, kwargs)) != region.signature
            or not region.structure.is_of(module)
        ):
            return original(module, *args, **kwargs)

        first = _First(
            region.structure.modules(),
            region.places,
            region.verdict,
            _generators(self._device),
            self._refuse,
        )
        # Containers may be changed by the caller, or the module. Torch keeps the tensors, which can
        # leave like all that is kept: nothing here leads to them after the call. Whoever gives them
        # back looks whether they were changed.
        given: Any = (args, kwargs)
        tensors = list({id(each): each for each in tensors}.values())
        places = emptied(given, tensors)

        def run(*kept: torch.Tensor) -> Any:
            nonlocal given
            (args, kwargs), given = given or filled(places, kept), None
            return original(module, *args, **kwargs)

        return checkpoint(
            run,
            *tensors,  # torch learns from them of which device autocast is to be as now
            use_reentrant=False,
            preserve_rng_state=False,  # see `_First`
            early_stop=False,  # it would keep this frame, and arguments, until a collection
            context_fn=lambda: (first, _Again(first)),
        )

    def _refuse(self, verdict: Verdict) -> None:
        """Run nothing again that is like a call which did what none did when it was tried."""
        with self._lock:
            refused = Verdict("it changes a buffer in some of its calls")
            calls = () if self._looked_at is None else self._looked_at.calls
            for noted in [one for one in calls if one.verdict is verdict]:
                noted.verdict = refused
            for kind in [key for key, one in self._verdicts.items() if one is verdict]:
                self._verdicts[kind] = refused
            for key in [key for key, one in self._regions.items() if one.verdict is verdict]:
                self._regions.pop(key, None)

    def _may_look(self) -> bool:
        """Whether a call is one of a forward pass that keeps something for its backward pass."""
        return (
            torch.is_grad_enabled()
            and torch._C._current_graph_task_id() == -1
            and torch._C._autograd._saved_tensors_hooks_is_enabled()
            and not _has_other_processes()  # they might wait for each other in other modules
            and not getattr(self._thread, "trying", False)
            and torch._C._functorch.maybe_current_level() is None
            and not torch.jit.is_tracing()
            # Modes of the program's would be others in the backward pass.
            and not torch._C._len_torch_dispatch_stack()
            and torch._C._len_torch_function_stack() == _modes_of_default_device()
        )

    def _noted(
        self,
        there: _ForwardPass,
        original: _Original,
        module: torch.nn.Module,
        args: Any,
        kwargs: Any,
    ) -> Any:
        """Call a module, and take notes."""
        if len(there.calls) >= _MOST_CALLS and not there.under_way:
            self._pass = None
            return original(module, *args, **kwargs)
        tensors = arguments_in(args, kwargs)
        number = there.calls_of.get(id(module), 0)
        there.calls_of[id(module)] = number + 1
        signature = None if tensors is None else signature_of((args, kwargs))
        noted = _NotedCall(weakref.ref(module), number, structure_of(module), signature)
        there.calls.append(noted)
        there.under_way.append(noted)
        kind, before = None, None
        if tensors and any(each.device == self._device for each in tensors):
            kind = (noted.structure, signature)
            noted.verdict = self._verdicts.get(kind)
            if noted.verdict is None and not (reason := why_not(module)):
                before = Before(module, (args, kwargs), self._device)
            elif noted.verdict is None:
                noted.verdict = Verdict(reason)
                self._verdicts[kind] = noted.verdict
        try:
            outputs = original(module, *args, **kwargs)
        finally:
            there.under_way.remove(noted)
            noted.end = len(there.calls)
            noted.kept_until_bytes = there.kept_bytes
        stays = {
            storage[0]: storage[1]
            for each in (tensors or ())
            if (storage := _storage_of(each, self._device)) is not None
        }
        left = arguments_in(outputs, ()) or ()
        also = {_storage_of(each, self._device) for each in left}
        kept = {
            key: nbytes
            for key, nbytes in noted.kept.items()
            if key not in stays and (key, nbytes) not in also
        }
        new = sum(nbytes for key, nbytes in stays.items() if key not in there.seen)
        noted.spared_bytes = max(sum(kept.values()) - new, 0)
        noted.kept.clear()
        if before is not None and self._is_worth_a_trial(noted.spared_bytes):
            self._thread.trying = True
            try:
                noted.verdict = tried(
                    lambda: original(module, *args, **kwargs),
                    module,
                    before,
                    outputs,
                    self._clock,
                    self._device,
                )
            finally:
                self._thread.trying = False
            self._verdicts[kind] = noted.verdict
        if noted.verdict is not None and not noted.verdict.refusal and noted.spared_bytes:
            assert tensors is not None
            there.arguments.append((noted, tensors, [version_of(each) for each in tensors]))
            changing = noted.verdict.changing
            buffers = [one for name, one in module.named_buffers() if name not in changing]
            there.buffers.append((noted, buffers, [version_of(each) for each in buffers]))
        return outputs

    def _is_worth_a_trial(self, spared_bytes: int) -> bool:
        least_bytes = self._needed_bytes * _LEAST_TRIED_FRACTION
        return least_bytes < spared_bytes <= self._budget_bytes * _MOST_TRIED_FRACTION


def _modes_of_default_device() -> int:
    """Return how many modes `torch.set_default_device` has: its backward passes have them, too."""
    return int(getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None) is not None)


def _has_other_processes() -> bool:
    distributed = torch.distributed
    return bool(
        distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
    )


def _storage_of(tensor: torch.Tensor, device: torch.device) -> tuple[int, int] | None:
    """Return which storage a tensor has, and its bytes; None for parameters and other devices."""
    if type(tensor) is not torch.Tensor or tensor.device != device or is_parameter(tensor):
        return None
    try:
        storage = tensor.untyped_storage()
        return storage._cdata, storage.nbytes()
    except (RuntimeError, NotImplementedError):
        return None


# Settings of torch's that say how something is computed, and how to change them: contexts of the
# program's have others in a forward pass than there are in its backward pass.
_SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    *(
        (getattr(torch._C, f"_get_{name}"), getattr(torch._C, f"_set_{of_setter or name}"))
        for name, of_setter in {
            "flash_sdp_enabled": "sdp_use_flash",
            "mem_efficient_sdp_enabled": "sdp_use_mem_efficient",
            "math_sdp_enabled": "sdp_use_math",
            "cudnn_sdp_enabled": "sdp_use_cudnn",
            "sdp_priority_order": "",
            "cudnn_enabled": "",
            "cudnn_benchmark": "",
            "cudnn_deterministic": "",
        }.items()
        if hasattr(torch._C, f"_get_{name}")
    ),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.get_default_dtype, torch.set_default_dtype),
)


def _settings() -> list[Any]:
    return [read() for read, _ in _SETTINGS]


def _set(settings: list[Any]) -> None:
    for (_, write), value in zip(_SETTINGS, settings, strict=True):
        write(value)


def _generators(device: torch.device) -> list[torch.Generator]:
    """Return those that give random numbers to a module on a device."""
    of_device = [torch.cuda.default_generators[device.index or 0]] if device.type == "cuda" else []
    return [torch.default_generator, *of_device]


class _First:
    """The context of a call that will be run again.

    Parameters
    ----------
    modules : list of torch.nn.Module
        The one that is called, and those in it.
    places : list of tuple of int and str
        Which buffers it changes: see `_places_of`.
    verdict : Verdict
        Of its trial.
    generators : list of torch.Generator
        Of random numbers, which may be drawn again.
    refuse : callable
        Takes the verdict, if the call changes a buffer that none did when it was tried.
    """

    def __init__(
        self,
        modules: list[torch.nn.Module],
        places: list[tuple[int, str]],
        verdict: Verdict,
        generators: list[torch.Generator],
        refuse: Callable[[Verdict], None],
    ) -> None:
        # With what is in them: `torch.func.functional_call` puts other tensors there for a while.
        self.members = [
            (its, dict(its)) for each in modules for its in (each._parameters, each._buffers) if its
        ]
        changing = [modules[number]._buffers[name] for number, name in places]
        # What a call changes, without counting what is done to it: autograd may keep a buffer.
        self.changing = [one.data for one in changing if one is not None]
        self.put_back = self.changing  # after a repetition
        known = set(map(id, changing))
        self.parameters = [
            one for each in modules for one in each._parameters.values() if one is not None
        ]
        self.buffers = [
            one
            for each in modules
            for one in each._buffers.values()
            if one is not None and id(one) not in known
        ]
        self.versions = self.versions_now()
        self.before: list[torch.Tensor] = []  # copies of what it changes
        self.settings = _settings()
        self.drawn: list[tuple[torch.Generator, torch.Tensor]] = []  # from, and its state before
        self._generators, self._states = generators, [each.get_state() for each in generators]
        self._verdict, self._refuse = verdict, refuse

    def __enter__(self) -> None:
        if self._verdict.needs_buffers:
            self.before = _copies(self.changing)

    def __exit__(self, *_: object) -> None:
        """Learn what the call did."""
        self.drawn = [
            (each, state)
            for each, state in zip(self._generators, self._states, strict=True)
            if not torch.equal(each.get_state(), state)
        ]
        self._states = []
        if not self.buffers:
            return
        then, now = self.versions[-len(self.buffers) :], list(map(version_of, self.buffers))
        if now != then:
            # What these were before is not known any more, but they are to change only once.
            pairs = zip(self.buffers, then, now, strict=True)
            also = [each.data for each, before, after in pairs if before != after]
            self.put_back = [*self.changing, *also]
            self.versions[-len(now) :] = now
            self._refuse(self._verdict)

    def versions_now(self) -> list[int]:
        """Return how often each of its tensors was changed that no call changes."""
        return [*map(version_of, self.parameters), *map(version_of, self.buffers)]


class _Again:
    """The context of its repetitions: its members are as they were then, and afterwards as now."""

    def __init__(self, first: _First) -> None:
        self._first = first
        self._now: list[torch.Tensor] = []
        self._others: list[tuple[Any, Any]] = []
        self._settings: list[Any] = []
        self._states: list[tuple[torch.Generator, torch.Tensor]] = []

    def __enter__(self) -> None:
        first = self._first
        if first.versions_now() != first.versions:
            used = [*first.parameters, *first.buffers]
            for each, version in zip(used, first.versions, strict=True):
                if version_of(each) != version:
                    raise changed(each, version)
        self._now = _copies(first.put_back)
        self._states = [(each, each.get_state()) for each, _ in first.drawn]
        self._settings = _settings()
        self._others = [
            (its, dict(its))
            for its, then in first.members
            if any(its.get(name) is not each for name, each in then.items())
        ]
        for its, then in first.members if self._others else ():
            its.update(then)
        if self._settings != first.settings:
            _set(first.settings)
        for generator, state in first.drawn:
            generator.set_state(state)
        if first.before:
            _copy(first.changing, first.before)

    def __exit__(self, *_: object) -> None:
        _copy(self._first.put_back, self._now)
        for generator, state in self._states:
            generator.set_state(state)
        if self._settings != self._first.settings:
            _set(self._settings)
        for its, now in self._others:
            its.update(now)
        self._now, self._others, self._states = [], [], []


def _copies(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    found = [torch.empty_like(each) for each in tensors]
    _copy(found, tensors)
    return found


def _copy(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """Copy tensors: torch copies those of one type together that come after each other."""
    for _, pairs in groupby(zip(targets, sources, strict=True), lambda pair: pair[0].dtype):
        of_type = list(pairs)
        torch._foreach_copy_([each for each, _ in of_type], [each for _, each in of_type])


def _places_of(module: torch.nn.Module, names: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return the place of each buffer: the number of its module, and its name there.

    Sorted by their types; see `_copy`. They hold for all modules of the same structure.
    """
    numbers = {id(each): number for number, each in enumerate(module.modules())}
    found = []
    for name in sorted(names, key=lambda one: str(module.get_buffer(one).dtype)):
        path, _, own = name.rpartition(".")
        found.append((numbers[id(module.get_submodule(path))], own))
    return found

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Being told by torch: of allocations and frees, of streams and events.

Torch keeps lists of callbacks, which threads go through while others change them: lists are
replaced as a whole here. Segments have to be told of every allocation; see `before_others`.

Torch calls Python where it frees memory, also while an error of Python passes through C++: then the
call fails, and that error is lost. Checkpointing ends a recomputation by such an error as soon as
it has what it needs. So it recomputes to the end while telling is on; and telling ends with the
last listener, which torch itself has no call for.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.utils.checkpoint

from rmm_uvm._lib.torch_segments import Teller, TorchSegments

__all__ = ["before_others", "listen", "tell"]

_SWITCH = "_ZN3c104impl8GPUTrace9haveStateE"  # c10::impl::GPUTrace::haveState, of torch 2.9 to 2.13

# Of one thread, too: a signal's handler or a pending call may begin while another one ends.
_lock = threading.RLock()
_listeners: set[object] = set()
_changing = False
_undo: contextlib.ExitStack | None = None


def listen() -> Callable[[], None]:
    """Have torch tell its callbacks of what happens; return what ends it. Thread-safe.

    Notes
    -----
    Costs about a microsecond an allocation. Telling that somebody else switched on stays on, and so
    does all where a build of torch does not show its switch: then checkpointing goes on recomputing
    to the end. Whoever activates torch's telling after the last listener is not told.
    """
    listener = object()

    def end() -> None:
        with _lock:
            _listeners.discard(listener)
            _follow_listeners()

    with _lock:
        _listeners.add(listener)
        try:
            _follow_listeners()
        except BaseException:
            _listeners.discard(listener)
            raise
    return end


def _follow_listeners() -> None:
    global _changing, _undo
    if _changing:  # further down in this thread, where it is looked at again
        return
    _changing = True
    try:
        while bool(_listeners) != (_undo is not None):
            if _undo is None:
                _undo = _begin()
            else:
                undo, _undo = _undo, None
                undo.close()
    finally:
        _changing = False


def _begin() -> contextlib.ExitStack:
    switch = _switch()
    is_on = switch is not None and switch.value  # by somebody else, whose it stays
    recompute = _recompute_to_the_end()
    undo = contextlib.ExitStack()
    try:
        torch._C._activate_gpu_trace()  # the first time; torch passes over any other
    except BaseException:
        recompute()
        raise
    if switch is not None and not is_on:
        switch.value = True
        undo.callback(_end, switch, recompute)
    return undo


def _end(switch: ctypes.c_bool, recompute: Callable[[], None]) -> None:
    from torch.cuda import _gpu_trace

    registries = vars(_gpu_trace).values()
    if any(getattr(each, "callback_list", None) for each in registries):
        return  # somebody else began to listen meanwhile
    switch.value = False
    recompute()


def _switch() -> ctypes.c_bool | None:
    """Return torch's own variable, or None where it cannot be found."""
    library = Path(torch.__file__).with_name("lib") / "libc10.so"
    try:
        return ctypes.c_bool.in_dll(ctypes.CDLL(str(library)), _SWITCH)
    except (OSError, ValueError):
        return None


class _NeverEarly:
    """Takes the place of an attribute of checkpointed parts: whether they end early."""

    def __get__(self, part: Any, _kind: type) -> Any:
        if part is None:
            return self
        part.__dict__["early_stop"] = False  # for good: it may be half-way when this ends
        return False

    def __set__(self, part: Any, value: object) -> None:
        part.__dict__["early_stop"] = value


def _recompute_to_the_end() -> Callable[[], None]:
    """Have checkpointed parts do so, also those that went forward already; return what ends it."""
    kind = getattr(torch.utils.checkpoint, "_CheckpointFrame", None)
    if kind is None or isinstance(vars(kind).get("early_stop"), _NeverEarly):
        return lambda: None
    kind.early_stop = _NeverEarly()

    def end() -> None:
        del kind.early_stop

    return end


def tell(registry: Any, callback: Callable[..., None]) -> Callable[[], None]:
    """Have a callback of a registry of torch's called; return what ends it."""
    registry.callback_list = [*registry.callback_list, callback]

    def end() -> None:
        registry.callback_list = [each for each in registry.callback_list if each != callback]

    return end


def before_others(
    registry: Any, segments: TorchSegments, *, frees: bool = False
) -> Callable[[], None]:
    """Have segments told of every allocation, or free, whatever signals wait; return what ends it.

    Torch calls a function of Python, which may be begun by the handler of a signal that raises: the
    callbacks are passed over then. So the function is replaced by one that is not Python's. It also
    takes less of the host's time, at each of a step's thousands of allocations and frees: torch's
    own function is called only while somebody is registered there.

    Parameters
    ----------
    registry : object
        Of torch's.
    segments : TorchSegments
        Who is told.
    frees : bool
        Whether the registry is that of frees.
    """
    theirs = registry.fire_callbacks
    own = getattr(theirs, "__func__", None) is type(registry).fire_callbacks
    own = own and hasattr(registry, "callback_list")
    teller = Teller(segments, theirs, frees, registry if own else None)
    registry.fire_callbacks = teller

    def end() -> None:
        teller.end()
        if registry.fire_callbacks is teller:  # else somebody's after ours, which passes on
            registry.fire_callbacks = teller.theirs

    return end

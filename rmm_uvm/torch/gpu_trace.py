# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch's telling of what happens to streams and memory: on while somebody here listens.

Torch calls Python where it frees memory, also while an error of Python passes through C++: then the
call fails, and that error is lost. Checkpointing ends a recomputation by such an error as soon as
it has what it needs. So it recomputes to the end while telling is on; and telling ends with the
last listener, which torch itself has no call for.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import torch
import torch.utils.checkpoint

__all__ = ["listen"]

_SWITCH = "_ZN3c104impl8GPUTrace9haveStateE"  # c10::impl::GPUTrace::haveState, of torch 2.0 to 2.13

_lock = threading.Lock()
_listeners = 0
_undo: contextlib.ExitStack | None = None
_stays = contextlib.ExitStack()  # what is never undone


def listen() -> Callable[[], None]:
    """Have torch tell its callbacks of what happens; return what ends it, once. Thread-safe.

    Notes
    -----
    Costs about a microsecond an allocation. Where a build of torch does not show its switch,
    telling stays on after the last listener, and checkpointing goes on recomputing to the end.
    """
    global _listeners, _undo
    with _lock:
        if _listeners == 0:
            _undo = _begin()
        _listeners += 1

    @functools.cache
    def end() -> None:
        global _listeners, _undo
        with _lock:
            _listeners -= 1
            if _listeners == 0 and _undo is not None:
                _undo.close()
                _undo = None

    return end


def _begin() -> contextlib.ExitStack:
    undo = contextlib.ExitStack()
    switch = _switch()
    is_on = switch is not None and switch.value  # by somebody else, whose it stays
    ends = switch is not None and not is_on
    (undo if ends else _stays).enter_context(
        torch.utils.checkpoint.set_checkpoint_early_stop(False)
    )
    _recompute_to_the_end()
    torch._C._activate_gpu_trace()  # the first time; torch passes over any other
    if switch is not None and ends:
        switch.value = True
        undo.callback(_turn_off, switch)
    return undo


def _recompute_to_the_end() -> None:
    """Have also those parts recompute that went forward already, and are still to go backward."""
    kind = getattr(torch.utils.checkpoint, "_CheckpointFrame", None)
    for each in gc.get_objects() if kind is not None else ():
        if type(each) is kind:
            each.early_stop = False


def _turn_off(switch: ctypes.c_bool) -> None:
    switch.value = False


def _switch() -> ctypes.c_bool | None:
    """Return torch's own variable, or None where it cannot be found."""
    library = Path(torch.__file__).with_name("lib") / "libc10.so"
    try:
        return ctypes.c_bool.in_dll(ctypes.CDLL(str(library)), _SWITCH)
    except (OSError, ValueError):
        return None

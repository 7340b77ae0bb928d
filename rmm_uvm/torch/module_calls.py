# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which calls of modules are under way in a thread, seen from hooks before and after them.

Torch does not call the hook after a module that ended with an interrupt (`KeyboardInterrupt`), and
hooks that come while a module is at work see its end only. So a call is known by its frame.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType

import torch

__all__ = ["ModuleCalls"]

_CODE = torch.nn.Module._call_impl.__code__


class ModuleCalls:
    """Calls under way, thread by thread; to be told by torch's hooks, directly. Thread-safe.

    Nothing of a call is kept alive.
    """

    def __init__(self) -> None:
        self._thread = threading.local()  # .frames: identities, the outermost call's first

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

    def forget(self) -> None:
        """Forget the calls of this thread."""
        self._frames().clear()

    def _frames(self) -> list[int]:
        frames: list[int] | None = getattr(self._thread, "frames", None)
        if frames is None:
            frames = self._thread.frames = []
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

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finds what an operation uses of the package: functions that run, and classes of its results.

Seen, and not said by a list: whoever changes an operation cannot forget it.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from types import CodeType, FrameType, TracebackType
from typing import Any

_PARTS = ("managed_mr", "residency")  # which resources have
# Where functions come from that classes of one kind have in common: data classes from Python 3.13
# on, and protocols, whose own run when somebody first asks for an instance of any of them.
_SHARED = (dataclasses.__name__, typing.__name__)


class Used:
    """Notes what runs in this thread within a ``with`` block."""

    def __init__(self) -> None:
        self._codes: set[CodeType] = set()
        self._classes: set[type] = set()

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.settrace(self._before)

    def _note(self, frame: FrameType, _event: str, _argument: object) -> None:
        self._codes.add(frame.f_code)  # returns nothing: lines are of no interest

    def add(self, given: Any) -> None:
        """Note what was given, and what that consists of: compiled code is not seen running."""
        parts = list(given) if isinstance(given, tuple | list) else [given]
        for part in parts:  # grows meanwhile
            self._classes.update(type(part).__mro__)
            parts += [getattr(part, name) for name in _PARTS if hasattr(part, name)]

    def __contains__(self, name: Any) -> bool:
        """Return whether a function ran, or of a class a method, or there was an instance."""
        if not inspect.isclass(name):
            return getattr(inspect.unwrap(name), "__code__", None) in self._codes
        functions = (getattr(each, "fget", each) for each in vars(name).values())
        own = [each for each in functions if getattr(each, "__module__", "") not in _SHARED]
        codes = {getattr(inspect.unwrap(each), "__code__", None) for each in own if each}
        return name in self._classes or not self._codes.isdisjoint(codes)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A context that says so when it goes without ever having been entered.

A call that takes effect in a ``with`` block alone does nothing as a plain statement, and nobody
would be told.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

from rmm_uvm.errors import NotEnteredWarning

__all__ = ["CallerLine", "WithOnly"]

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class CallerLine:
    """The line that called the function which makes this, for what is said of it later."""

    __slots__ = ("_file", "_globals", "_number")

    def __init__(self) -> None:
        asked = sys._getframe(1)
        # No frame is kept: it would keep all that its function has. And a thread may begin with us.
        frame = asked.f_back or asked
        self._file, self._number = frame.f_code.co_filename, frame.f_lineno
        self._globals = frame.f_globals

    def warn_never_entered(self, hint: str) -> None:
        """Warn about it, once where it stands in a loop."""
        if warnings is None:  # late in the end of Python
            return
        warnings.warn_explicit(
            hint,
            NotEnteredWarning,
            self._file,
            self._number,
            module=self._globals.get("__name__", "<unknown>"),
            registry=self._globals.setdefault("__warningregistry__", {}),
        )


class WithOnly(AbstractContextManager[T], Generic[T]):
    """A context for one ``with`` statement, or for each call of one function.

    Parameters
    ----------
    opened : callable
        Returns the context that is entered; called when it is.
    hint : str
        What to warn of where it never is, and what to do.
    line : CallerLine
        What the warning is about, not the line at which it happens to go.
    """

    _opened: Callable[[], AbstractContextManager[T]] | None = None

    def __init__(
        self, opened: Callable[[], AbstractContextManager[T]], hint: str, line: CallerLine
    ) -> None:
        self._hint = hint
        self._context: AbstractContextManager[T] | None = None
        self._line = line
        self._opened = opened

    def __enter__(self) -> T:
        self._context = self._used()()  # what that holds goes with the block
        return self._context.__enter__()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return a function whose calls have it each, as a decorator."""
        opened = self._used()

        @functools.wraps(function)
        def called(*arguments: P.args, **keywords: P.kwargs) -> R:
            with opened():
                return function(*arguments, **keywords)

        return called

    def _used(self) -> Callable[[], AbstractContextManager[T]]:
        if self._opened is None:
            raise RuntimeError("this was entered before: make another for each with statement")
        opened, self._opened = self._opened, None
        return opened

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._context is not None
        context, self._context = self._context, None
        return context.__exit__(kind, error, traceback)

    def __del__(self) -> None:
        if self._opened is not None:
            self._line.warn_never_entered(self._hint)

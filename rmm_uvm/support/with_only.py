# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A context that says so when it goes without ever having been entered.

A call that takes effect in a ``with`` block alone does nothing as a plain statement, and nobody
would be told.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

from rmm_uvm.errors import NotEnteredWarning
from rmm_uvm.support.user_line import CodeLine

__all__ = ["WithOnly"]

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class WithOnly(AbstractContextManager[T], Generic[T]):
    """A context for one ``with`` statement, or for each call of one function.

    Parameters
    ----------
    opened : callable
        Returns the context that is entered; called when it is.
    hint : str
        What to warn of where it never is, and what to do.
    line : CodeLine
        What the warning is about, not the line at which it happens to go.
    """

    _opened: Callable[[], AbstractContextManager[T]] | None = None

    def __init__(
        self, opened: Callable[[], AbstractContextManager[T]], hint: str, line: CodeLine
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
            self._line.warn(self._hint, NotEnteredWarning)

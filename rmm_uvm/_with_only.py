# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A context that says so when it goes without ever having been entered.

A call that takes effect in a ``with`` block alone does nothing as a plain statement, and nobody
would be told.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, TypeVar

from rmm_uvm.errors import NotEnteredWarning

__all__ = ["WithOnly"]

T = TypeVar("T")


class WithOnly(AbstractContextManager[T], Generic[T]):
    """A context for one ``with`` statement.

    Parameters
    ----------
    opened : callable
        Returns the context that is entered; called when it is.
    hint : str
        What to warn of where it never is, and what to do.

    Notes
    -----
    The warning is about the line that called whoever makes this, not about the one at which it
    happens to go.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[T]], hint: str) -> None:
        self._opened: Callable[[], AbstractContextManager[T]] | None = opened
        self._hint = hint
        self._context: AbstractContextManager[T] | None = None
        caller = sys._getframe(2)
        self._place = (caller.f_code.co_filename, caller.f_lineno)
        self._module = caller.f_globals.get("__name__", "<unknown>")
        # Of the module, so that a line in a loop warns once.
        self._registry = caller.f_globals.setdefault("__warningregistry__", {})

    def __enter__(self) -> T:
        if self._opened is None:
            raise RuntimeError("this was entered before: make another for each with statement")
        opened, self._opened = self._opened, None  # what it holds goes with the block
        self._context = opened()
        return self._context.__enter__()

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
        if self._opened is not None and warnings is not None:  # None late in the end of Python
            warnings.warn_explicit(
                self._hint,
                NotEnteredWarning,
                *self._place,
                module=self._module,
                registry=self._registry,
            )

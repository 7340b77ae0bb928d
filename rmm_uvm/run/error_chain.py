# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An error of a program, and those behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["error_chain"]

_LONGEST_CHAIN = 16  # it may be a ring


def error_chain(
    error: BaseException, arose: Callable[[BaseException], bool] = lambda _: True
) -> Iterator[BaseException]:
    """Yield an error, then its causes, or else what it arose from, at most 16 in all.

    Parameters
    ----------
    error : BaseException
        What a program raised.
    arose : callable
        Whether what an error happened to arise from counts; what was raised ``from`` it always
        does, and ``from None`` nothing.

    Examples
    --------
    >>> first, then = ValueError("first"), KeyError("then")
    >>> then.__context__ = first
    >>> [str(one) for one in error_chain(then)]
    ["'then'", 'first']
    >>> [str(one) for one in error_chain(then, lambda one: False)]
    ["'then'"]
    """
    one: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if one is None:
            return
        yield one
        follows = not one.__suppress_context__ and arose(one)
        one = one.__cause__ or (one.__context__ if follows else None)

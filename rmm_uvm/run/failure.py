# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How a program ended that did not end well, in one sentence for the summary.

Figures of a program that died are of what ran: nobody may be told that there is nothing to do. The
error's own text stays in the traceback, since a report may be passed on and it may hold data.
"""

from __future__ import annotations

import dataclasses
import re
import signal
from collections.abc import Callable, Iterator

from rmm_uvm._lib.limits import ENVIRONMENT_VARIABLE
from rmm_uvm.support.units import format_bytes

__all__ = ["PoolLimit", "error_chain", "of_error", "of_status", "status_of"]

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


_OF_WHAT_RAN = "the figures are of what ran"

# RMM's pool says the first; where the process' cap is reached, our resource says the second.
_POOL_IS_FULL = ("Maximum pool size exceeded", f"{ENVIRONMENT_VARIABLE} is reached")
_OF_CUDA = ("cudaErrorMemoryAllocation", "out_of_memory", "bad_alloc", "CUDA out of memory")
# RMM says bad_alloc whatever CUDA answered; the answer's name is of CUDA and holds no data.
_ANSWER_OF_CUDA = re.compile(r"cudaError[A-Z][A-Za-z]+")
_OUT_OF_MEMORY = "cudaErrorMemoryAllocation"


@dataclasses.dataclass(frozen=True)
class PoolLimit:
    """The limit of a run's pool.

    Parameters
    ----------
    maximum_bytes : int
        Most that it takes.
    reason : str
        Where that is from, as `rmm_uvm.pool.sizing.PoolSizes.maximum_reason` has it.
    """

    maximum_bytes: int
    reason: str


def of_error(
    error: BaseException, limit: PoolLimit | None = None, *, asked_for_pool: bool = True
) -> str:
    """Return the sentence for what a program raised; empty if it ended well.

    Parameters
    ----------
    error : BaseException
        What the program did not catch; its causes count too.
    limit : PoolLimit, optional
        Of the managed pool, where there is one.
    asked_for_pool : bool
        A managed pool was asked for.

    Examples
    --------
    >>> of_error(ValueError("wrong")), of_error(SystemExit(0))
    ('the program ended early with ValueError: the figures are of what ran', '')
    >>> of_error(MemoryError("Maximum pool size exceeded"), PoolLimit(256 << 20, "as asked"))
    "the program ran out of memory at 256.00 MiB, the pool's maximum: raise --maximum"
    """
    if isinstance(error, SystemExit):
        return of_status(status_of(error))
    if isinstance(error, KeyboardInterrupt):
        return f"the program was interrupted: {_OF_WHAT_RAN}"
    of_memory = [one for one in error_chain(error) if _is_of_memory(one)]
    if not of_memory:
        answer = _ANSWER_OF_CUDA.search(str(error))
        why = f" ({answer.group()})" if answer else ""
        return f"the program ended early with {type(error).__name__}{why}: {_OF_WHAT_RAN}"
    text = " ".join(str(one) for one in of_memory)
    if limit is not None and any(sign in text for sign in _POOL_IS_FULL):
        return f"the program ran out of memory at {_of_pool(limit)}"
    if not asked_for_pool and any(sign in text for sign in _OF_CUDA):
        return (
            "the program ran out of device memory: without --no-pool, what does not fit can go to "
            "the host"
        )
    beside = "" if limit is None else ", not of the managed pool's"
    name = type(of_memory[0]).__name__
    return f"the program ran out of memory{beside}: the traceback of its {name} says of which"


def status_of(error: BaseException) -> int:
    """Return the exit status, as shells have it, of a program that does not catch `error`.

    Examples
    --------
    >>> [status_of(one) for one in (SystemExit(), SystemExit(3), SystemExit("no"), ValueError())]
    [0, 3, 1, 1]
    """
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def of_status(status: int) -> str:
    """Return the sentence for an exit status as shells have it; empty for 0.

    Examples
    --------
    >>> of_status(3)
    'the program ended with exit status 3: the figures are of what ran'
    >>> of_status(137)
    'the program was ended by SIGKILL: the figures are of what ran'
    """
    if status == 0:
        return ""
    try:
        return f"the program was ended by {signal.Signals(status - 128).name}: {_OF_WHAT_RAN}"
    except ValueError:
        return f"the program ended with exit status {status}: {_OF_WHAT_RAN}"


def _of_pool(limit: PoolLimit) -> str:
    size = format_bytes(limit.maximum_bytes)
    if limit.reason == "as asked":
        return f"{size}, the pool's maximum: raise --maximum"
    if limit.reason.startswith(ENVIRONMENT_VARIABLE):
        return f"{size}, what {ENVIRONMENT_VARIABLE} leaves for the pool: raise it"
    return (
        f"{size}, the pool's maximum ({limit.reason}): use less at a time, or set --maximum as far "
        "as device and host have room"
    )


def _is_of_memory(error: BaseException) -> bool:
    answers = _ANSWER_OF_CUDA.findall(str(error))
    if answers and _OUT_OF_MEMORY not in answers:
        return False  # no driver, no device, a kernel that failed before: nothing ran out
    # Torch's error is a RuntimeError, and libraries wrap RMM's in errors of their own.
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return True
    return any(sign in str(error) for sign in (*_POOL_IS_FULL, *_OF_CUDA))

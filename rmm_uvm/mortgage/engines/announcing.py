# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An engine that announces what each operation is about to use, then runs it.

libcudf's kernels are not seen from outside, so that a budget does not know what is needed next.
Whoever writes the pipeline does: before an operation, the memory of its frames and columns is
announced with `rmm_uvm.touch`. Results are those of the engine underneath.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from rmm_uvm.errors import DataError
from rmm_uvm.mortgage.engines.column import Column

__all__ = ["COMPUTING", "announcing"]

COMPUTING = (
    *("filter", "groupby", "left_join", "concat", "to_host", "training_matrix"),
    *("_arithmetic", "_compare", "_floor", "_cast", "_fill_null", "_date_part"),
)
"""Operations that read their arguments' memory; the others only pass it on."""


def announcing(engine: Any, touch: Callable[[Any], object]) -> Any:
    """Let an engine announce the arguments of every operation that computes.

    Parameters
    ----------
    engine : Engine
        Changed: its operations announce from now on.
    touch : callable
        Told about each frame and column; `rmm_uvm.touch`, or what a test looks at.

    Returns
    -------
    Engine
        The same one.
    """
    for name in COMPUTING:
        setattr(engine, name, _announced(getattr(engine, name), touch))
    return engine


def _announced(operation: Callable[..., Any], touch: Callable[[Any], object]) -> Callable[..., Any]:
    @functools.wraps(operation)
    def run(*arguments: Any, **options: Any) -> Any:
        for thing in _things((*arguments, *options.values())):
            try:
                touch(thing)
            except DataError:  # memory of another pool, or a frame without rows
                continue
        return operation(*arguments, **options)

    return run


def _things(arguments: Any) -> Iterator[Any]:
    """Yield frames and columns among the arguments."""
    for one in arguments:
        if isinstance(one, Column):
            yield one.data
        elif isinstance(one, list | tuple):
            yield from _things(one)
        elif hasattr(one, "dtype") or hasattr(one, "dtypes"):
            yield one

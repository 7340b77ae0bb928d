# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Dask's scheduler and workers in the process of a test, and what they say there."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import dask
from distributed import Scheduler, Worker
from distributed.utils import offload

LOGGER = "distributed.worker.rmm_uvm"


def start_offload_thread() -> None:
    """Start the thread that Dask starts when it first needs one, and keeps until the end."""
    asyncio.run(offload(int))


@contextlib.asynccontextmanager
async def scheduler() -> AsyncIterator[Scheduler]:
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as started:
        yield started


def worker(of: Scheduler, *arguments: str, preload: str = "rmm_uvm.dask", **options: Any) -> Worker:
    """Return a worker, not started yet; `arguments` are its flags for the preload."""
    known: dict[str, Any] = {"host": "127.0.0.1", "dashboard": False, "nthreads": 1}
    preloads = [preload] if preload else []
    return Worker(
        of.address, preload=preloads, preload_argv=list(arguments), **{**known, **options}
    )


def run(test: Callable[[Scheduler], Awaitable[Any]], **configuration: Any) -> Any:
    """Run a test with a scheduler."""

    async def with_scheduler() -> Any:
        async with scheduler() as started:
            return await test(started)

    with dask.config.set(configuration):
        return asyncio.run(with_scheduler())


@contextlib.contextmanager
def logged(level: int = logging.INFO) -> Iterator[list[str]]:
    """Collect what our side of a worker logs; Dask's loggers pass nothing on to pytest's."""
    lines: list[str] = []
    handler = logging.Handler(level)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(LOGGER)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)

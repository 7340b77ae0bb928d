# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A bounded number of steps under way at once, in order."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

__all__ = ["Window"]


class Window:
    """Runs coroutines as tasks, at most `depth` at a time; an asynchronous context manager.

    Leaving it waits for all. If the body or a task failed, the others are cancelled first, so
    that none outlives the transfer that it belongs to.

    Parameters
    ----------
    depth : int
        > 0.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._tasks: collections.deque[asyncio.Task[None]] = collections.deque()

    async def add(self, step: Coroutine[Any, Any, None]) -> None:
        """Begin `step`, then wait until there is room for another.

        Raises
        ------
        Exception
            What an earlier step raised.
        """
        self._tasks.append(asyncio.create_task(step))
        while len(self._tasks) >= self._depth:
            await self._oldest()

    async def _oldest(self) -> None:
        # Awaited where it is: cancelled on the way, it still has to be cleaned up.
        await self._tasks[0]
        self._tasks.popleft()

    async def __aenter__(self) -> Window:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            while error is None and self._tasks:
                await self._oldest()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

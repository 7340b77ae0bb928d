# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Giving way to other work of the event loop, often enough and no more often."""

from __future__ import annotations

import asyncio
import time

__all__ = ["TURN_SECONDS", "Turn"]

TURN_SECONDS = 1e-3
"""For how long a transfer may keep the event loop: a fifth of what Dask takes for an empty task."""


class Turn:
    """What a transfer asks after each step whether its turn is over."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def give_way(self) -> None:
        """Let others run, if it has been long."""
        if time.perf_counter() - self._began > TURN_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A bounded number of steps at once."""

from __future__ import annotations

import asyncio

import pytest

from rmm_uvm.comm.window import Window


class Steps:
    def __init__(self) -> None:
        self.running = self.most = self.finished = self.cancelled = 0

    async def step(self, turns: int = 3, error: Exception | None = None) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
            if error is not None:
                raise error
            self.finished += 1
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_window_runs_all_and_at_most_depth_at_once(depth: int) -> None:
    steps = Steps()

    async def run() -> None:
        async with Window(depth) as window:
            for _ in range(10):
                await window.add(steps.step())

    asyncio.run(run())
    assert (steps.finished, steps.most) == (10, depth)


def test_window_with_a_step_that_fails_raises_it_and_cancels_the_others() -> None:
    steps = Steps()

    async def run() -> None:
        async with Window(8) as window:
            await window.add(steps.step(2, ValueError("failed")))
            for _ in range(3):
                await window.add(steps.step(100))

    with pytest.raises(ValueError, match="failed"):
        asyncio.run(run())
    assert (steps.cancelled, steps.running) == (3, 0)


def test_window_whose_body_fails_cancels_the_steps() -> None:
    steps = Steps()

    async def run() -> None:
        async with Window(8) as window:
            await window.add(steps.step(100))
            await asyncio.sleep(0)
            raise KeyError("body")

    with pytest.raises(KeyError):
        asyncio.run(run())
    assert (steps.cancelled, steps.running) == (1, 0)


def test_window_that_is_cancelled_while_it_waits_cancels_the_steps() -> None:
    steps = Steps()

    async def transfer() -> None:
        async with Window(2) as window:
            await window.add(steps.step(10_000))
            await window.add(steps.step(10_000))

    async def run() -> None:
        task = asyncio.create_task(transfer())
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert (steps.cancelled, steps.running) == (2, 0)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A program of the neighbour's own, in a process of its own: its work, counted while it runs.

It allocates by cudaMalloc only, so that it takes nothing of the cap on managed memory.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

JOBS = ("matrix", "stream", "etl")
_WORDS = 64 << 20  # of a stream, 4 bytes each
_ETL_WORDS = 16 << 20
_LONGEST_START_SECONDS = 60.0


def _work(kind: str) -> Callable[[], object]:
    """Return a step: multiplying, streaming, or reading from the host, sorting and counting."""
    import cupy
    import numpy

    if kind == "matrix":
        ones = cupy.ones((4096, 4096), dtype=cupy.float32)
        result = cupy.empty_like(ones)
        return lambda: cupy.matmul(ones, ones, out=result)
    if kind == "stream":
        words = cupy.zeros(_WORDS, dtype=cupy.float32)
        return lambda: cupy.add(words, 1, out=words)
    rows = numpy.random.default_rng(1).integers(0, 1 << 20, _ETL_WORDS, dtype=numpy.int32)

    def etl() -> object:
        keys = cupy.sort(cupy.asarray(rows))
        return cupy.asnumpy(cupy.bincount(keys, minlength=1 << 20))

    return etl


def _run(kind: str, device: int, told: Any, stopped: Any) -> None:
    import cupy

    cupy.cuda.Device(device).use()
    step = _work(kind)
    step()
    cupy.cuda.runtime.deviceSynchronize()
    events: list[Any] = []
    while not stopped.is_set():
        step()
        events.append(cupy.cuda.Event())
        events[-1].record()
        if len(events) > 4:  # a few ahead, so that the GPU never waits for Python
            events.pop(0).synchronize()
            with told.get_lock():
                told[0] += 1
                told[1] = time.monotonic()


class OwnerJob:
    """Runs until the end of the ``with`` block.

    Parameters
    ----------
    kind : str
        One of `JOBS`.
    device : int
        CUDA ordinal.
    """

    def __init__(self, kind: str, device: int = 1) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self._told = context.Array("d", 2)  # steps done, and when the last of them was
        self._stopped = context.Event()
        self._process = context.Process(
            target=_run, args=(kind, device, self._told, self._stopped), daemon=True
        )

    def __enter__(self) -> OwnerJob:
        self._process.start()
        deadline = time.monotonic() + _LONGEST_START_SECONDS
        while self._last()[0] < 8:
            if not self._process.is_alive() or time.monotonic() > deadline:
                raise SystemExit("the neighbour's own program did not start: see what it printed")
            time.sleep(0.05)
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()

    def step_seconds(self, during: Callable[[], object]) -> float:
        """Return the mean time of the steps that end while something is done."""
        before, begin = self._next()
        during()
        after, end = self._last()
        return (end - begin) / (after - before) if after > before else float("nan")

    def alone(self, seconds: float) -> float:
        """Return the mean time of a step while nothing else is done."""
        return self.step_seconds(lambda: time.sleep(seconds))

    def _last(self) -> tuple[float, float]:
        with self._told.get_lock():
            return self._told[0], self._told[1]

    def _next(self) -> tuple[float, float]:
        """Return the same as soon as another step is done: only whole steps count."""
        before, deadline = self._last(), time.monotonic() + _LONGEST_START_SECONDS
        while (found := self._last()) == before:
            if not self._process.is_alive() or time.monotonic() > deadline:
                raise SystemExit("the neighbour's own program ended: see what it printed")
            time.sleep(0.0002)
        return found

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Loops of plain kernels over arrays, whose contents are looked at by every kernel that reads them.

The shapes are those of `etl_loop` and `training_loop` of `benchmarks/residency/programs.py`, which
run on simulated cards. Nothing sees these kernels: data come unseen where they are not announced.
A word that is lost ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common.gpu_arrays import GpuArrays
from benchmarks.past_the_edge.programs.announcing import announcing

PASSES = 400  # multiplications on each word that is read


class Loop:
    """What both have in common.

    Parameters
    ----------
    data_bytes : int
        The most that lives at a time.
    pieces : int
        Iterations of a round.
    announced : bool
        Call `rmm_uvm.touch` before each kernel.
    """

    STEPS: int
    SIDES = ("resident", "announced", "unseen", "fault-driven")
    PARTS: int
    """That live at the most, of equal size."""

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        self._part = data_bytes // self.PARTS // 256 * 256
        self.operations = pieces * self.STEPS
        self._announce = announcing(announced)
        self._arrays: Any = None
        self._steps: list[Callable[[int], None]] = []

    def make(self) -> None:
        import rmm

        self._arrays = GpuArrays(
            rmm.mr.get_per_device_resource(0),
            PASSES,
            touch=lambda address, nbytes, _: self._announce((address, nbytes)),
        )
        self._steps = self._made()

    def operation(self, number: int) -> int:
        iteration, step = divmod(number, self.STEPS)
        self._steps[step](iteration)
        if step == self.STEPS - 1 and (wrong := self._arrays.finish()):
            raise SystemExit(f"{wrong} words were lost")
        return number

    def drop(self) -> None:
        if self._arrays is not None:
            for handle in self._arrays.held():
                self._arrays.free(handle)
        self._arrays, self._steps = None, []

    def _made(self) -> list[Callable[[int], None]]:
        """Make what stays; return the steps of an iteration, which are told its number."""
        raise NotImplementedError


class Etl(Loop):
    """Arrays: parts come, are joined with tables that stay, cleaned, aggregated, and go."""

    STEPS, PIECES, PARTS = 4, 6, 176 // 8
    KEPT = 4

    def _made(self) -> list[Callable[[int], None]]:
        memory, part = self._arrays, self._part
        tables = [memory.make(3 * part) for _ in range(2)]
        now: dict[str, int] = {}
        kept: list[int] = []

        def clean(_: int) -> None:
            raw = memory.make(8 * part)
            memory.read(tables[0])
            now["clean"] = memory.make(7 * part)
            memory.read(raw)
            memory.write(now["clean"])
            memory.free(raw)

        def join(_: int) -> None:
            memory.read(tables[1])
            now["joined"] = memory.make(9 * part)
            memory.read(now["clean"])
            memory.write(now["joined"])
            memory.free(now.pop("clean"))

        def aggregate(_: int) -> None:
            work = memory.make(4 * part)
            memory.read(now["joined"])
            memory.write(work)
            memory.free(now.pop("joined"))
            memory.free(work)

        def keep(number: int) -> None:
            kept.append(memory.make((2 + number % 3) * (part // 64 // 256 * 256 + 256)))
            if len(kept) > self.KEPT:
                memory.free(kept.pop(0))

        return [clean, join, aggregate, keep]


class Training(Loop):
    """Arrays: the same data in each round, with work space that comes and goes."""

    DATA = 6
    STEPS, PIECES, PARTS = DATA + 1, 4, 164 // 4

    def _made(self) -> list[Callable[[int], None]]:
        memory, part = self._arrays, self._part
        data = [memory.make(6 * part) for _ in range(self.DATA)]
        state = memory.make(3 * part)
        work: list[int] = []

        def reads(handle: int) -> Callable[[int], None]:
            def read(_: int) -> None:
                if not work:
                    work.append(memory.make(2 * part))
                memory.read(handle)
                memory.write(work[0])

            return read

        def update(_: int) -> None:
            memory.write(state)
            memory.free(work.pop())

        return [*map(reads, data), update]

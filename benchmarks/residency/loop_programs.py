# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `loop.py` runs: data of several budgets, used piece by piece, the same in every round.

Numbers are whole, so that checksums are equal whatever the memory is, and whoever computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KEYS = 1_000_000
PRIME = 2_147_483_647


class Frames:
    """cuDF: a step merges, groups, sorts and adds up one frame.

    Parameters
    ----------
    data_bytes : int
        Of all frames together.
    pieces : int
        Frames.
    announced : bool
        Call `rmm_uvm.touch` with a frame before its step.
    """

    COLUMNS = 4
    STEPS = 4

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        import cudf

        self._cudf, self._announce = cudf, _announcing(announced)
        self._rows = data_bytes // pieces // self.COLUMNS // 8
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._frames: list[Any] = []
        self._dimension: Any = None
        self._now: Any = None

    def make(self) -> None:
        keys = self._cudf.Series(self._cudf.RangeIndex(min(KEYS, self._rows)))
        self._dimension = self._cudf.DataFrame({"key": keys * 1, "worth": keys * 7919 % 10_007})
        self._frames = [self._frame(number) for number in range(self._pieces)]

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        if step == 0:
            self._announce(self._frames[piece])
            self._now = self._frames[piece].merge(self._dimension, on="key", how="inner")
        elif step == 1:
            how = {"value": "sum", "number": "max", "worth": "sum"}
            self._now = self._now.groupby("group", as_index=False).agg(how)
        elif step == 2:
            self._now = self._now.sort_values(["value", "group"])
        else:
            first, self._now = self._now.head(1000), self._now[["value", "number", "worth"]]
            sums = [int(self._now[name].sum()) for name in ("value", "number", "worth")]
            self._now = None
            return sums[0] + 3 * sums[1] + 5 * sums[2] + 7 * int(first["group"].sum())
        return len(self._now)

    def drop(self) -> None:
        self._frames, self._dimension, self._now = [], None, None

    def _frame(self, number: int) -> Any:
        rows, cudf = self._rows, self._cudf
        row = cudf.Series(cudf.RangeIndex(number * rows, (number + 1) * rows))
        keys = len(self._dimension)
        return cudf.DataFrame(
            {
                "key": row * 2_654_435_761 % keys,
                "group": row * 40_503 % keys,
                "value": (row * 1_103_515_245 + 12_345) % PRIME,
                "number": row * 1,
            }
        )


class Arrays:
    """CuPy: a step writes an array, makes another of it, and adds both up."""

    STEPS = 3

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        import cupy

        self._cupy, self._announce = cupy, _announcing(announced)
        self._words = data_bytes // pieces // 8
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._arrays: list[Any] = []
        self._now: Any = None

    def make(self) -> None:
        u64 = self._cupy.uint64
        for number in range(self._pieces):
            array = self._cupy.arange(self._words, dtype=u64)
            array *= u64(2_654_435_761 + number)
            self._arrays.append(array)

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        array, u64 = self._arrays[piece], self._cupy.uint64
        if step == 0:
            self._announce(array)
            array *= u64(3)
            array += u64(number + 1)
            return piece
        if step == 1:
            self._now = array >> u64(7)
            self._now ^= array
            return piece
        total = int(array.sum()) ^ int(self._now.max()) ^ int(self._now.sum())
        self._now = None
        return total

    def drop(self) -> None:
        self._arrays, self._now = [], None


class Simulated:
    """Without a GPU: memory that a simulated device is told to use.

    Parameters
    ----------
    memory : Memory
        That has a simulated device.
    residency : ManagedResidency or None
        Is told of each use, as cuDF's calls are; None where nobody is.
    """

    STEPS = 3
    BYTES_PER_SECOND = 1e12

    def __init__(self, data_bytes: int, pieces: int, memory: Any, residency: Any) -> None:
        self._memory, self._residency = memory, residency
        self._bytes = data_bytes // pieces // 256 * 256
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._held: list[int] = []
        self._made = 0

    def make(self) -> None:
        for _ in range(self._pieces):
            self._held.append(self._memory.mr.allocate(self._bytes))
            self._use(self._held[-1], self._bytes, write=True)

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        if step == 0:
            self._use(self._held[piece], self._bytes)
        elif step == 1:
            self._made = self._memory.mr.allocate(self._bytes // 2)
            self._use(self._made, self._bytes // 2, write=True)
        else:
            self._memory.mr.deallocate(self._made, self._bytes // 2)
            self._made = 0
        return number

    def drop(self) -> None:
        for address in self._held:
            self._memory.mr.deallocate(address, self._bytes)
        self._held = []

    def _use(self, address: int, nbytes: int, *, write: bool = False) -> None:
        self._memory.driver.compute(nbytes / self.BYTES_PER_SECOND)
        if self._residency is not None:
            self._residency.touch(address, nbytes, address)
        if self._memory.managed:
            self._memory.driver.touch(address, nbytes, write)


def _announcing(announced: bool) -> Callable[[Any], Any]:  # noqa: FBT001 - one switch
    if not announced:
        return lambda _: None
    import rmm_uvm

    return rmm_uvm.touch


PROGRAMS: dict[str, type[Frames] | type[Arrays]] = {"cudf": Frames, "cupy": Arrays}

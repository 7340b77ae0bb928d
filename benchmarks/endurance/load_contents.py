# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Known contents in the memory of a device: of a GPU in a stream's order, or of a simulated one.

Covers writing and looking. Does not cover what is allocated when; see `load.py`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from benchmarks.common.stamped import Stamped, words_at

_HOST_BYTES = 2 << 20  # looked at from the host of one buffer: each page is a fault there
_PAGE_WORDS = 512


class Contents(Protocol):
    """What one thread of the load computes with.

    Attributes
    ----------
    stream : object
        Of its kernels, as hints take it.
    """

    stream: Any

    def allocate(self, mr: Any, nbytes: int) -> int:
        """Allocate in the order of the stream."""

    def free(self, mr: Any, address: int, nbytes: int) -> None:
        """Free in the order of the stream."""

    def write(self, address: int, nbytes: int, value: int) -> None:
        """Write contents that only this value makes."""

    def look(self, address: int, nbytes: int, value: int) -> None:
        """Look at all of it, and count what is not as this value makes it."""

    def look_from_host(self, address: int, nbytes: int, value: int) -> None:
        """Look at some of it from the host, and count the same."""

    def finish(self) -> int:
        """Wait for the stream; return how much was ever wrong."""


class SimulatedContents:
    """Stamped buffers of a simulated device with backing; see `Contents`.

    Parameters
    ----------
    driver : SimulatedDevice
        The device. It has the default stream only.
    """

    stream = None

    def __init__(self, driver: Any) -> None:
        self._driver, self._wrong = driver, 0

    def allocate(self, mr: Any, nbytes: int) -> int:
        return int(mr.allocate(nbytes))

    def free(self, mr: Any, address: int, nbytes: int) -> None:
        mr.deallocate(address, nbytes)

    def write(self, address: int, nbytes: int, value: int) -> None:
        self._driver.touch(address, nbytes, write=True)
        Stamped(address, nbytes).write(value)

    def look(self, address: int, nbytes: int, value: int) -> None:
        self._driver.touch(address, nbytes)
        self._wrong += not Stamped(address, nbytes, value).whole

    def look_from_host(self, address: int, nbytes: int, value: int) -> None:
        self._driver.cpu_touch(address, min(nbytes, _HOST_BYTES))
        self._wrong += not Stamped(address, nbytes, value).whole

    def finish(self) -> int:
        return self._wrong


class GpuContents:
    """Words of a GPU that kernels write and look at, in a stream of their own; see `Contents`.

    Make it before CuPy allocates from the pool: its counter is not of the memory that it judges.
    """

    def __init__(self) -> None:
        import cupy
        from rmm.pylibrmm.stream import Stream

        from benchmarks.common.gpu_arrays import GRID, kernels

        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._ours = Stream(self.stream)
        self._u64, self._grid = cupy.uint64, GRID
        self._fill, self._work = kernels()
        self._wrong = cupy.zeros(1, dtype=cupy.uint64)
        cupy.cuda.runtime.deviceSynchronize()  # the counter is zero before another stream counts
        self._wrong_on_host = 0

    def allocate(self, mr: Any, nbytes: int) -> int:
        return int(mr.allocate(nbytes, self._ours))

    def free(self, mr: Any, address: int, nbytes: int) -> None:
        mr.deallocate(address, nbytes, self._ours)

    def write(self, address: int, nbytes: int, value: int) -> None:
        with self.stream:
            self._fill(*self._grid, self._words(address, nbytes, value))

    def look(self, address: int, nbytes: int, value: int) -> None:
        u64 = self._u64
        with self.stream:
            words = self._words(address, nbytes, value)
            self._work(*self._grid, (*words, u64(0), u64(0), self._wrong))

    def look_from_host(self, address: int, nbytes: int, value: int) -> None:
        self.stream.synchronize()
        count = min(nbytes, _HOST_BYTES) // 8
        wanted = np.arange(count, dtype=np.uint64)[::_PAGE_WORDS] + np.uint64(value)
        self._wrong_on_host += int((words_at(address, count)[::_PAGE_WORDS] != wanted).sum())

    def finish(self) -> int:
        self.stream.synchronize()
        return int(self._wrong.get(stream=self.stream)[0]) + self._wrong_on_host

    def _words(self, address: int, nbytes: int, value: int) -> tuple[Any, ...]:
        return self._u64(address), self._u64(nbytes // 8), self._u64(value)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs like those of `chaos.py` on a GPU, whose kernels write and look at what is there.

What only a simulated device can do is left out: its other devices and its own books, and calls that
fail, but of operations apart, which have simulated devices here, too. No process but the one that
began with CUDA uses it: children of forks do not touch memory, and neighbours are begun anew.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hypothesis.stateful import invariant

import rmm_uvm

from ..gpu.room import lacking
from ..support.known_contents import Buffer
from .chaos import Chaos
from .choices import handles

_BY_HOST = 1 / 8  # of all looks, and of all writes
_ROOT = Path(__file__).resolve().parents[2]
_NEIGHBOR = """
import sys
sys.path.append(sys.argv[1])
from tests.stateful.chaos import work_until_killed
work_until_killed(sys.argv[2], int(sys.argv[3]))
"""


@dataclass(eq=False)
class GpuBuffer(Buffer):
    """One that kernels write and look at, and now and then the host.

    What is written is there before anything else happens: no use has to wait for another. Whether
    one waits for hints that are under way is drawn, since it need not.
    """

    by_host: bool = False  # what comes next

    def _whole(self) -> Any:
        import cupy

        if random.random() < 1 / 2:
            cupy.cuda.runtime.deviceSynchronize()
        if self.by_host:
            return super()._whole()
        memory = cupy.cuda.UnownedMemory(self.address, self.nbytes, self.mr, 0)
        return cupy.ndarray(self.nbytes, cupy.uint8, cupy.cuda.MemoryPointer(memory, 0))

    def _to_look_at(self) -> Any:
        asked = self.by_host
        self.by_host = asked or random.random() < _BY_HOST
        try:
            return self._whole()
        finally:
            self.by_host = asked

    def write(self, number: int) -> None:
        import cupy

        super().write(number)
        cupy.cuda.runtime.deviceSynchronize()
        self.by_host = False


@functools.cache
def first_gpu() -> Any:
    """Open the first GPU and streams of it, for the rest of this process."""
    import cupy

    driver = rmm_uvm.cuda_driver(0)
    if why := lacking(driver):
        raise RuntimeError(why)
    driver.request_faults()  # what counts them is opened at the first request, and kept
    driver.release_faults()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in handles]
    handles.update(zip(handles, (stream.ptr for stream in streams), strict=True))
    return driver, streams


class ChaosOnGpu(Chaos):
    """Any program of all that is public, on the first GPU."""

    neighbors: ClassVar[tuple[int, ...]] = ()
    buffers: ClassVar[type[Buffer]] = GpuBuffer
    signal_seconds: ClassVar[float] = 0.01  # a handler that waits for the GPU has to end before
    # These rules are of simulated devices.
    owner_takes = neighbor_works = driver_call_will_fail = None  # type: ignore[assignment]

    def __init__(self) -> None:
        first_gpu()  # what CUDA begins at its first use was there before
        super().__init__()

    def make_device(self, **features: bool) -> None:
        """Take the GPU as it is."""
        self.device, _ = first_gpu()

    def use(self, buffer: Buffer, *, write: bool = False, on_host: bool = False) -> None:
        """Look at a buffer on the device or on the host, or have it written there next."""
        assert isinstance(buffer, GpuBuffer)
        buffer.by_host = on_host or random.random() < _BY_HOST
        if not write:
            assert not buffer.changed
            buffer.by_host = False

    def compare_books(self, **expected: int) -> None:
        """Compare nothing: a GPU has no books."""

    @contextlib.contextmanager
    def _evicting(self, monitor: Any) -> Iterator[None]:
        yield  # other counts of the driver come late

    def thread_ids(self) -> set[int]:
        """Return those of ours alone: CUDA begins some when it likes, and keeps them."""
        found = set()
        for number in super().thread_ids():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                name = Path(f"/proc/self/task/{number}/comm").read_text()
                if name.startswith("rmm_uvm"):
                    found.add(number)
        return found

    @invariant()
    def contents_are_as_written(self) -> None:
        """Look at some of what is alive, announced or not; the rest may stay on the host."""
        looked_at = [buffer for buffer in self.live if random.random() < 1 / 2]
        for buffer in looked_at:
            if random.random() < 1 / 2:
                rmm_uvm.touch(buffer.region, mr=buffer.mr)
        assert [buffer.region for buffer in looked_at if buffer.changed] == []

    def go_on(self, *_: Any, **__: Any) -> None:
        """See as a child that nothing is watched, and end."""
        assert self.monitor is None or not self.monitor.running

    def _begin_neighbor(self, reading: int, writing: int) -> int:
        os.set_inheritable(writing, True)
        words = ["-P", "-c", _NEIGHBOR, str(_ROOT), str(self._folder), str(writing)]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        return os.posix_spawn(sys.executable, [sys.executable, *words], environment)

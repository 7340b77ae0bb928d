# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `gpu.py` does in each of its threads: allocations, uses and hints, at random.

Contents are known, and looked at whenever they are used, moved on request, or freed. Written
against `Contents` of `load_contents.py`: a GPU, or a simulated device.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rmm_uvm
from benchmarks.endurance.load_contents import Contents

LEAST_BYTES = 256
_WORD_BYTES = 8
# How often what is done, of all that is done.
_WEIGHTS = {
    "make": 30,
    "free": 18,
    "use": 24,
    "change": 10,
    "prefetch": 4,
    "evict": 5,
    "pin": 4,
    "advise": 2,
    "from_host": 3,
}


@dataclass(eq=False)
class Held:
    """A buffer, the pool that it is of, and the value that its contents were made of."""

    mr: Any
    address: int
    nbytes: int
    value: int

    @property
    def region(self) -> tuple[int, int]:
        """Return it as hints take it."""
        return self.address, self.nbytes


class Worker:
    """One thread's part of the load, with buffers and values of its own.

    Parameters
    ----------
    number : int
        Which one: the seed of what it does, and part of its values.
    contents : Contents
        What it computes with.
    most_live_bytes, most_bytes : int
        That it holds at a time, and of one buffer.

    Attributes
    ----------
    operations, checks, refused : int
        Done so far; times that contents were looked at; allocations for which there was no room.
    """

    def __init__(
        self, number: int, contents: Contents, most_live_bytes: int, most_bytes: int
    ) -> None:
        self._number, self._contents = number, contents
        self._random = random.Random(number)
        self._most_live_bytes, self._most_bytes = most_live_bytes, most_bytes
        self._held: list[Held] = []
        self._values = 0
        self.operations = self.checks = self.refused = 0

    @property
    def live_bytes(self) -> int:
        """What it holds."""
        return sum(one.nbytes for one in self._held)

    def run(self, mr: Any, ended: Callable[[int], bool]) -> None:
        """Do whatever comes, new memory being of `mr`, until `ended`, which is told how much."""
        done = 0
        while not ended(done):
            [action] = self._random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
            if action == "make" or not self._held:
                self._make(mr)
            else:
                getattr(self, f"_{action}")(self._random.choice(self._held))
            done += 1
        self.operations += done

    def free_all(self, but_of: Any = None) -> None:
        """Free everything, or all that is not memory of one pool."""
        for one in [one for one in self._held if one.mr is not but_of]:
            self._free(one)

    def finish(self) -> int:
        """Wait until all is done; return how much was ever wrong."""
        return self._contents.finish()

    def _make(self, mr: Any) -> None:
        exponent = self._random.uniform(0, 1)
        nbytes = int(LEAST_BYTES * (self._most_bytes / LEAST_BYTES) ** exponent)
        nbytes = nbytes // _WORD_BYTES * _WORD_BYTES
        while self._held and self.live_bytes + nbytes > self._most_live_bytes:
            self._free(self._random.choice(self._held))
        self._hold(mr, nbytes)

    def _hold(self, mr: Any, nbytes: int) -> None:
        try:
            address = self._contents.allocate(mr, nbytes)
        except MemoryError:
            self.refused += 1
            return
        self._held.append(Held(mr, address, nbytes, 0))
        self._write(self._held[-1])

    def _write(self, one: Held) -> None:
        # Unlike that of any other buffer of any thread, by more than a buffer has words.
        self._values += 1
        one.value = (self._values << 8 | self._number) << 32
        self._contents.write(*one.region, one.value)

    def _look(self, one: Held) -> None:
        self.checks += 1
        self._contents.look(*one.region, one.value)

    def _free(self, one: Held) -> None:
        self._look(one)
        self._contents.free(one.mr, *one.region)
        self._held.remove(one)

    def _use(self, one: Held) -> None:
        rmm_uvm.touch(one.region, mr=one.mr, stream=self._contents.stream)
        self._look(one)

    def _change(self, one: Held) -> None:
        self._use(one)
        self._write(one)

    def _prefetch(self, one: Held) -> None:
        rmm_uvm.prefetch(one.region, mr=one.mr, stream=self._contents.stream)
        self._look(one)

    def _evict(self, one: Held) -> None:
        rmm_uvm.evict(one.region, mr=one.mr, stream=self._contents.stream)
        if self._random.random() < 0.5:  # else it stays away for a while
            self._look(one)

    def _pin(self, one: Held) -> None:
        with rmm_uvm.pin(one.region, mr=one.mr):
            self._change(one)

    def _advise(self, one: Held) -> None:
        place = self._random.choice(("device", "host", "none"))
        rmm_uvm.advise(one.region, preferred=place, mr=one.mr)
        self._look(one)

    def _from_host(self, one: Held) -> None:
        self.checks += 1
        self._contents.look_from_host(*one.region, one.value)

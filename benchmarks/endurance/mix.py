# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `allocations.py` allocates: a churn that fits its budget, and excursions that do not.

Covers what is allocated, used and freed, and in which order. Does not cover what is measured; see
`common/process_levels.py` and `common/free_extents.py`.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import rmm_uvm
from benchmarks.common.stamped import Stamped

MIB = 1 << 20
LEAST_EXPONENT, MOST_EXPONENT = 8, 24  # 256 bytes to 16 MiB, log-uniform
SLOTS = 40
# The first slots are used anew after two allocations, the last ones after hundreds.
SKEW = 5
CHURN_STEPS, EXCURSION_STEPS = 99_800, 200
STAMPED_EVERY, STAMPED_AT_ONCE = 128, 8
USE_EVERY = 20  # steps of an excursion
TABLES, TABLES_KEPT, TABLE_MIB = 6, 1, (40, 56)
STREAMS = (0, 7, 9)  # of hints: RMM's pool allocates on others with CUDA events, which need a GPU
# Without a common divisor: pairs of slot and size come again after four billion allocations.
_SIZES, _SLOT_CHOICES = 65_521, 65_536


class Mix:
    """Allocations of a program that goes on and on, the same in every run.

    Most live for a few others, some for thousands. In excursions there are tables besides, some of
    which stay until the next: so many that the budget does not hold them.

    Parameters
    ----------
    mr : UvmResourceAdaptor
        Whence it comes; its simulated device has to have backing.
    seed : int
        Of everything that is chosen.

    Attributes
    ----------
    allocations : int
        So far.
    checks, wrong : int
        How often a buffer's stamps were looked at, and how often one was not as written.
    """

    def __init__(self, mr: Any, seed: int = 1) -> None:
        self._mr, self._device = mr, mr.driver
        self._random = random.Random(seed)
        sizes = [self._size() for _ in range(_SIZES)]
        slots = [int(SLOTS * self._random.random() ** SKEW) for _ in range(_SLOT_CHOICES)]
        self._choices = zip(itertools.cycle(slots), itertools.cycle(sizes), strict=True)
        self._sizes = sizes[:SLOTS]
        self._addresses = [mr.allocate(nbytes) for nbytes in self._sizes]
        self._stamped: list[Stamped] = []
        self._tables: list[Stamped] = []
        self._stamps = 0
        self.allocations = SLOTS
        self.checks = self.wrong = 0

    def churn(self, steps: int = CHURN_STEPS) -> None:
        """Allocate and free what fits."""
        for _ in range(steps // STAMPED_EVERY):
            self._replace(STAMPED_EVERY - 1)
            self._replace_stamped()
        self._replace(steps % STAMPED_EVERY)

    def excursion(self, steps: int = EXCURSION_STEPS) -> None:
        """Allocate and free beside tables that are used in turn, more than the budget holds."""
        while len(self._tables) < TABLES:
            self._tables.append(self._make(self._random.randint(*TABLE_MIB) * MIB))
        for number in range(steps // USE_EVERY):
            self._use(self._tables[number % TABLES], STREAMS[number % len(STREAMS)])
            self._replace(USE_EVERY - 1)
            self._replace_stamped()
        rmm_uvm.prefetch(self._tables[-1].region, mr=self._mr)
        rmm_uvm.evict(self._tables[-2].region, mr=self._mr)
        for table in self._tables[: TABLES - TABLES_KEPT]:
            self._free(table)
        del self._tables[: TABLES - TABLES_KEPT]

    def live(self) -> list[tuple[int, int]]:
        """Return address and size of all that is allocated now."""
        of_slots = zip(self._addresses, self._sizes, strict=True)
        return [*of_slots, *(one.region for one in (*self._stamped, *self._tables))]

    def free_all(self) -> None:
        """Free everything; stamps are checked once more."""
        for one in (*self._stamped, *self._tables):
            self._free(one)
        for address, nbytes in zip(self._addresses, self._sizes, strict=True):
            self._mr.deallocate(address, nbytes)
        for emptied in (self._stamped, self._tables, self._addresses, self._sizes):
            emptied.clear()

    def _size(self) -> int:
        return int(2 ** self._random.uniform(LEAST_EXPONENT, MOST_EXPONENT))

    def _replace(self, steps: int) -> None:
        """Free what is in a slot and allocate another in its place; nothing is written to it."""
        allocate, deallocate = self._mr.allocate, self._mr.deallocate
        addresses, sizes = self._addresses, self._sizes
        for slot, nbytes in itertools.islice(self._choices, steps):
            deallocate(addresses[slot], sizes[slot])
            addresses[slot], sizes[slot] = allocate(nbytes), nbytes
        self.allocations += steps

    def _replace_stamped(self) -> None:
        if len(self._stamped) == STAMPED_AT_ONCE:
            self._free(self._stamped.pop(self._random.randrange(STAMPED_AT_ONCE)))
        self._stamped.append(self._make(self._size()))

    def _make(self, nbytes: int) -> Stamped:
        made = Stamped(self._mr.allocate(nbytes), nbytes)
        self.allocations += 1
        self._write(made)
        return made

    def _write(self, one: Stamped) -> None:
        self._device.touch(*one.region, write=True)
        self._stamps += 1
        one.write(self._stamps)

    def _use(self, one: Stamped, stream: int) -> None:
        """Announce a use, read, and write something else."""
        rmm_uvm.touch(one.region, mr=self._mr, stream=stream)
        self._check(one)
        self._write(one)

    def _check(self, one: Stamped) -> None:
        self._device.touch(*one.region)
        self.checks += 1
        self.wrong += not one.whole

    def _free(self, one: Stamped) -> None:
        self._check(one)
        self._mr.deallocate(*one.region)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A loop without a GPU."""

from __future__ import annotations

from typing import Any


class Simulated:
    """Without a GPU: memory that a simulated device is told to use.

    Parameters
    ----------
    memory : Memory
        That has a simulated device.
    residency : ManagedResidency or None
        Is told of what is read, as cuDF's calls are; None where nobody is.
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
        if self._residency is not None and not write:
            self._residency.touch_all(((address, nbytes, address),), only_read=True)
        if self._memory.managed:
            self._memory.driver.touch(address, nbytes, write)

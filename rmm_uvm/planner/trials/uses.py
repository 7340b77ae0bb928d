# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The memory that a kernel uses, and the listeners that are told of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

__all__ = ["Receiver", "Use"]


class Use(NamedTuple):
    """A part of an allocation that one kernel reads, or reads and writes.

    Attributes
    ----------
    allocation : int
        What the receiver returned for it.
    first_byte, nbytes : int
        The part.
    writes : bool
        Whether the kernel writes it.
    fresh : bool
        Whether it was allocated for this kernel: whoever allocates says that it is used next.
    """

    allocation: int
    first_byte: int
    nbytes: int
    writes: bool
    fresh: bool


class Receiver(Protocol):
    """Told of everything that happens to memory, in order, by one thread at a time."""

    def allocate(self, nbytes: int) -> int:
        """Take note of an allocation, and return a number for it."""

    def free(self, allocation: int) -> None:
        """Take note of a free."""

    def kernel(self, uses: Sequence[Use], compute_seconds: float) -> None:
        """Take note of a kernel."""

    def given(self, use: Use) -> None:
        """Take note of contents that were there before."""

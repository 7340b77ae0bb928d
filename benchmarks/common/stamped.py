# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers of a simulated device with backing, stamped with a number of their own in every page.

A page is what a driver moves or loses. A number is given once, so that a buffer that holds the
bytes of another is told from one that holds its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

PAGE_BYTES = 4096
_WORD_BYTES = 8


@dataclass(eq=False)
class Stamped:
    """Memory with the number that was written to it; at least 16 bytes."""

    address: int
    nbytes: int
    stamp: int = 0

    def write(self, stamp: int) -> None:
        """Write a number to the first word of each page, to the buffer's first and to its last."""
        self.stamp = stamp
        for words in self._places():
            words[...] = stamp

    @property
    def whole(self) -> bool:
        """Whether all of these words are what was written."""
        # No array of answers: NumPy keeps small ones of each size for later.
        return all(
            words.min(initial=self.stamp) == words.max(initial=self.stamp)
            for words in self._places()
        )

    @property
    def region(self) -> tuple[int, int]:
        """Return it as hints take it."""
        return self.address, self.nbytes

    def _places(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        last = self.nbytes // _WORD_BYTES - 1
        whole = words_at(self.address, last + 1)
        first = -self.address % PAGE_BYTES // _WORD_BYTES
        return whole[first :: PAGE_BYTES // _WORD_BYTES], whole[:: max(last, 1)]


def words_at(address: int, count: int) -> np.ndarray[Any, Any]:
    """Return the words at an address as an array; ctypes would keep a type for each count."""
    return np.asarray(_Words(address, count))


class _Words:
    """Words at an address, as NumPy asks for them."""

    def __init__(self, address: int, count: int) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (count,),
            "typestr": "<u8",
            "version": 3,
        }

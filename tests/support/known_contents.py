# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers whose contents are known: a value in every page, which are what a driver loses."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

PAGE_BYTES = 4096
_VALUES = 199  # 1 to 199: neither fresh zeros nor what a simulated discard leaves


@dataclass(eq=False)
class Buffer:
    """Memory of a pool with the value that was written to it."""

    mr: Any
    address: int
    nbytes: int
    value: int = 0

    def _views(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return its first bytes of each page, and its last byte."""
        whole = np.ctypeslib.as_array(
            ctypes.cast(self.address, ctypes.POINTER(ctypes.c_ubyte)), (self.nbytes,)
        )
        to_next = -self.address % PAGE_BYTES
        return whole[to_next::PAGE_BYTES], whole[[0, -1]]

    def write(self, number: int) -> None:
        """Write another value to all of its pages."""
        self.value = number % _VALUES + 1
        whole = np.ctypeslib.as_array(
            ctypes.cast(self.address, ctypes.POINTER(ctypes.c_ubyte)), (self.nbytes,)
        )
        whole[-self.address % PAGE_BYTES :: PAGE_BYTES] = self.value
        whole[0] = whole[-1] = self.value

    @property
    def changed(self) -> bool:
        """Whether a page does not hold what was written."""
        return any((view != self.value).any() for view in self._views())

    @property
    def region(self) -> tuple[int, int]:
        """Return it as hints take it."""
        return self.address, self.nbytes

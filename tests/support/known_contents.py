# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers whose contents are known: one value everywhere.

Pages are what a driver loses, so that a look at one byte of each is enough for most questions.
"""

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

    def _whole(self) -> Any:
        return np.ctypeslib.as_array(
            ctypes.cast(self.address, ctypes.POINTER(ctypes.c_ubyte)), (self.nbytes,)
        )

    def _to_look_at(self) -> Any:
        return self._whole()

    def write(self, number: int) -> None:
        """Write another value to all of it."""
        self.value = number % _VALUES + 1
        self._whole()[:] = self.value

    @property
    def changed(self) -> bool:
        """Whether a page does not hold what was written."""
        whole = self._to_look_at()
        ends = whole[:: max(1, self.nbytes - 1)]
        views = whole[-self.address % PAGE_BYTES :: PAGE_BYTES], ends
        return any((view != self.value).any() for view in views)

    @property
    def changed_anywhere(self) -> bool:
        """Whether any byte is not what was written: takes longer."""
        whole = self._to_look_at()
        return bool(whole.min() != self.value or whole.max() != self.value)

    @property
    def region(self) -> tuple[int, int]:
        """Return it as hints take it."""
        return self.address, self.nbytes

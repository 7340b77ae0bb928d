# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much managed memory this program may hold, decided before anything is allocated.

More managed memory than a GPU has free can hang the GPU and not only the process. So there is a
hard cap, it must be given from outside, and four times the memory in use has to be free.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

LIMIT_VARIABLE = "RMM_UVM_MANAGED_LIMIT"
OWN_LIMIT_BYTES = 8 << 30
FREE_FACTOR = 4
_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


class SafetyError(RuntimeError):
    """An allocation or a run that the safety rules refuse."""


def parse_limit(text: str) -> int:
    """Return a limit such as ``"8GiB"`` or ``"8589934592"`` in bytes.

    Raises
    ------
    SafetyError
        When the text is no positive size in B, KiB, MiB or GiB.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = _UNITS.get(match[2].upper()) if match else None
    size_bytes = int(float(match[1]) * unit) if match and unit else 0
    if size_bytes <= 0:
        message = f"{LIMIT_VARIABLE}={text!r} is not a size; write for example 8GiB"
        raise SafetyError(message)
    return size_bytes


def limit_from_environment() -> int:
    """Return the cap in bytes: the smaller of the environment's and this program's own."""
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        message = (
            f"{LIMIT_VARIABLE} is not set; this program allocates managed memory and runs "
            f"only under a cap, for example {LIMIT_VARIABLE}=8GiB"
        )
        raise SafetyError(message)
    return min(parse_limit(text), OWN_LIMIT_BYTES)


@dataclass
class ManagedBudget:
    """Live managed bytes of this process against its cap and the free device memory.

    Parameters
    ----------
    limit_bytes : int
        Most bytes that may be live at once; > 0.

    Notes
    -----
    Not thread-safe: only the main thread allocates.
    """

    limit_bytes: int
    peak_bytes: int = 0
    live: dict[int, int] = field(default_factory=dict)

    @property
    def live_bytes(self) -> int:
        """Bytes allocated and not yet freed."""
        return sum(self.live.values())

    def check(self, size_bytes: int, free_device_bytes: int) -> None:
        """Raise `SafetyError` unless `size_bytes` more may be allocated.

        Free memory already misses what is resident, so the test against it errs on the safe side.
        """
        wanted = self.live_bytes + size_bytes
        if wanted > self.limit_bytes:
            message = f"{wanted} managed bytes wanted, the cap is {self.limit_bytes}"
            raise SafetyError(message)
        if FREE_FACTOR * wanted > free_device_bytes:
            message = (
                f"{wanted} managed bytes wanted, but only {free_device_bytes} of device memory "
                f"are free and {FREE_FACTOR} times as much is asked for"
            )
            raise SafetyError(message)

    def add(self, pointer: int, size_bytes: int) -> None:
        """Record an allocation."""
        self.live[pointer] = size_bytes
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def remove(self, pointer: int) -> None:
        """Forget an allocation."""
        del self.live[pointer]

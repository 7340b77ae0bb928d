# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much host memory a budget takes for the copies that the host keeps.

Does not cover keeping them, which is C++
(``cpp/include/rmm_uvm/residency/budget/kept_copies.hpp``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.host_memory import host_memory
from rmm_uvm.residency.budget import Budget

__all__ = ["room_for_copies"]

_SHARE: Final = (
    4  # of the host's available memory; the rest is for what leaves, and for the program
)
_UNLIMITED: Final = 2**64 - 1


def room_for_copies(
    budget: Budget, *, simulated: bool = False, root: Path = Path("/")
) -> tuple[int, str]:
    """Return the most bytes of copies that the host keeps, and why there are none unasked.

    Parameters
    ----------
    budget : Budget
        What it asks for.
    simulated : bool
        Whether the device is a model: then the memory of this host is no limit.
    root : Path
        As of `rmm_uvm.machine.host_memory.host_memory`.

    Returns
    -------
    tuple of (int, str)
        Bytes, 0 for none; and the reason where nobody asked for none, else "".
    """
    if budget.kept_copy_bytes is not None:
        return budget.kept_copy_bytes, ""
    if not budget.fetch:
        return 0, ""
    if simulated:
        return _UNLIMITED, ""
    try:
        return host_memory(root).available_bytes // _SHARE, ""
    except AvailabilityError as error:
        return 0, str(error)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory measuring may take: decided before anything is allocated.

More managed memory than a GPU has free can hang the GPU, for everybody on the machine. So there is
a size of our own, the cap of the process, and twice as much has to be free.
"""

from __future__ import annotations

from rmm_uvm._lib.limits import ENVIRONMENT_VARIABLE
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.simulator.measuring.procedure import LEAST_REGION_BYTES
from rmm_uvm.support.units import format_bytes

__all__ = ["COPY_BYTES", "MOST_REGION_BYTES", "region_bytes_for"]

MOST_REGION_BYTES = 1 << 30
COPY_BYTES = 256 << 20
"""Size of a pinned buffer, of which there are two on the host and two on the device."""

_FREE_FACTOR = 2


def region_bytes_for(free_bytes: int, host_available_bytes: int, cap_bytes: int | None) -> int:
    """Return how much managed memory measuring may hold at once.

    Parameters
    ----------
    free_bytes : int
        Device memory that nobody holds.
    host_available_bytes : int
        Host memory that this process can still take.
    cap_bytes : int or None
        What the process' cap on managed memory leaves; None for no cap.

    Returns
    -------
    int
        A power of two, 256 MiB to 1 GiB: at most half of what is free on either side besides the
        pinned buffers.

    Raises
    ------
    AvailabilityError
        If that would be less than 256 MiB; the message says what is short.
    """
    beside_bytes = 2 * COPY_BYTES
    # What is there, what of it measuring leaves alone, and how often a region must fit the rest.
    bounds = [
        ("device memory", free_bytes, beside_bytes, _FREE_FACTOR),
        ("host memory", host_available_bytes, beside_bytes, _FREE_FACTOR),
    ]
    if cap_bytes is not None:
        bounds.append((f"managed memory under {ENVIRONMENT_VARIABLE}", cap_bytes, 0, 1))
    for what, there_bytes, others_bytes, factor in bounds:
        needed_bytes = others_bytes + factor * LEAST_REGION_BYTES
        if there_bytes < needed_bytes:
            raise AvailabilityError(
                f"measuring needs {format_bytes(needed_bytes)} of {what}, "
                f"there are {format_bytes(there_bytes)}"
            )
    room_bytes = min((there - others) // factor for _, there, others, factor in bounds)
    size_bytes = MOST_REGION_BYTES
    while size_bytes > room_bytes:
        size_bytes //= 2
    return size_bytes

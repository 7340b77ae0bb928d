# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is said where this process itself has too little memory, or addresses, for a replay.

A card that is too small is an answer of a replay; that this process is, is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rmm_uvm.planner.workload.events import Workload
from rmm_uvm.support.units import format_bytes

__all__ = ["NoRoomError", "replaying_here"]


class NoRoomError(MemoryError):
    """A workload cannot be replayed in this process."""


@contextmanager
def replaying_here(workload: Workload) -> Iterator[None]:
    """Say what was being done, and what can be: C++ and numpy say no more than that there is none.

    Raises
    ------
    NoRoomError
        If memory runs out.
    """
    try:
        yield
    except NoRoomError:
        raise
    except MemoryError as error:
        slab_bytes = sum(slab.nbytes for slab in workload.slabs)
        raise NoRoomError(
            f"{workload.source} cannot be replayed here: this process has no addresses or memory "
            f"left for a model of {format_bytes(slab_bytes)}; raise its limit (ulimit -v, or the "
            "container's), or record a shorter run"
        ) from error

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Where the main thread is: in the user's code, in a library, in this package, in a notebook cell.

Covers reading frames. Does not cover what is done there, see `rmm_uvm.watch.telling.delivery`.
"""

from __future__ import annotations

import dataclasses
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

__all__ = ["Place", "place_of"]

_OURS = str(Path(__file__).resolve().parents[2]) + os.sep
_LIBRARIES = tuple(
    {
        sysconfig.get_path(name) + os.sep
        for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
        if sysconfig.get_path(name)
    }
)
# Modules that stand between a program and what was called while it waited for events.
_LOOPS = frozenset({"asyncio.base_events", "asyncio.events", "asyncio.runners"})


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a thread is.

    Parameters
    ----------
    frame : FrameType or None
        The innermost frame of user code; where there is none, of any code but this package's.
    steady : bool
        An exception raised here is raised in user code or in something that it called. False
        inside this package, and where an event loop waits: an exception would break either.
    in_cell : bool
        A notebook cell, or an IPython prompt's input, is running.
    """

    frame: FrameType | None
    steady: bool
    in_cell: bool


def place_of(frame: FrameType | None) -> Place:
    """Return where a thread is whose innermost frame of interest is `frame`.

    Parameters
    ----------
    frame : FrameType or None
        Frames from here outwards count.
    """
    user = other = None
    steady = True
    in_cell = False
    for each in _outwards(frame):
        name = each.f_code.co_filename
        module = each.f_globals.get("__name__", "")
        if module == "IPython.core.interactiveshell" and each.f_code.co_name == "run_code":
            in_cell = True
        if user is not None:
            continue
        if name.startswith(_OURS):
            steady = False
            continue
        other = other or each
        if module in _LOOPS:
            steady = False
        elif not name.startswith((*_LIBRARIES, "<frozen ")):
            user = each
    return Place(user or other, steady and user is not None, in_cell)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back

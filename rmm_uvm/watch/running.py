# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The monitors that run in this process, for whoever shows or exports what is watched.

Magics and the exporter have to find them. In a forked child none runs. Does not start or stop any;
see `rmm_uvm.watch.monitor`.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmm_uvm.watch.monitor import Monitor

__all__ = ["enter", "leave", "running"]

# Module state, since it is of the process. No lock: garbage collection may stop a monitor in the
# middle of anything.
_running: dict[int, weakref.ref[Monitor]] = {}


def running() -> tuple[Monitor, ...]:
    """Return the monitors that run in this process now, the one that was started last at the end.

    Examples
    --------
    >>> import rmm_uvm
    >>> with rmm_uvm.monitor(driver="simulated:64MiB", publish=False) as m:
    ...     running() == (m,)
    True
    """
    found = (reference() for reference in list(_running.values()))
    return tuple(monitor for monitor in found if monitor is not None and monitor.running)


def enter(monitor: Monitor) -> None:
    """Put a monitor that was started at the end; it leaves by itself when it is dropped."""
    leave(monitor)  # so that it comes last
    _running[id(monitor)] = weakref.ref(monitor, functools.partial(_forget, id(monitor)))


def leave(monitor: Monitor) -> None:
    """Take a monitor out; nothing if it is not there."""
    _running.pop(id(monitor), None)


def _forget(identity: int, reference: weakref.ref[Monitor]) -> None:
    # Another monitor may have taken the place in memory meanwhile.
    if _running.get(identity) is reference:
        del _running[identity]

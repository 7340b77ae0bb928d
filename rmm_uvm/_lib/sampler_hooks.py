# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What happens to samplers when the process forks or exits.

A sample under way while the process forks would leave its locks taken in the child: the driver's,
the ledger's, malloc's. So samplers hold still over a fork. See `rmm_uvm._lib.monitor.Sampler`.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Protocol

__all__ = ["keep"]


class _Stoppable(Protocol):
    def stop(self) -> None: ...
    def _before_fork(self) -> None: ...
    def _after_fork(self) -> None: ...


# Module state, because the hooks are the process' own and cannot be taken back.
_live: weakref.WeakSet[_Stoppable] = weakref.WeakSet()
_held_over_fork: dict[int, list[_Stoppable]] = {}  # by the thread that forks


def keep(sampler: _Stoppable) -> None:
    """Let a sampler hold still over forks and stop at exit, as long as it lives."""
    _live.add(sampler)


def _before_fork() -> None:
    held = _held_over_fork[threading.get_ident()] = list(_live)
    for sampler in held:
        sampler._before_fork()


def _after_fork() -> None:
    for sampler in _held_over_fork.pop(threading.get_ident(), ()):
        sampler._after_fork()


def _at_exit() -> None:
    for sampler in list(_live):
        sampler.stop()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
atexit.register(_at_exit)

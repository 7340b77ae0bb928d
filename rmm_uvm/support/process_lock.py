# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A lock that a fork leaves free."""

from __future__ import annotations

import os
import threading

__all__ = ["ProcessLock"]


class ProcessLock:
    """A lock of each process: a forked child has another one, which nobody holds.

    Another thread may have held the parent's at the moment of the fork, and is not in the child.
    It is called to be taken, and is no context manager itself: between the lines of an
    ``__enter__`` in Python a signal handler may raise, and the lock would stay taken.

    Examples
    --------
    >>> lock = ProcessLock()
    >>> with lock():
    ...     lock().locked(), lock.here
    (True, True)
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._locks = {self._pid: threading.Lock()}

    @property
    def here(self) -> bool:
        """Whether this is the process that made it."""
        return os.getpid() == self._pid

    def __call__(self) -> threading.Lock:
        """Return the lock of this process."""
        pid = os.getpid()
        found = self._locks.get(pid)
        return self._locks.setdefault(pid, threading.Lock()) if found is None else found

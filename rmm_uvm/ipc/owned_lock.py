# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A lock that knows whether this thread has it."""

from __future__ import annotations

import threading

__all__ = ["OwnedLock"]


class OwnedLock:
    """A lock that knows whether this thread has it.

    Garbage collection may run code of ours in a thread that has the lock already: such code asks
    `held_here`, and leaves its work to the holder.

    Examples
    --------
    >>> lock = OwnedLock()
    >>> with lock:
    ...     lock.held_here, lock.try_acquire()
    (True, False)
    >>> lock.held_here
    False
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    @property
    def held_here(self) -> bool:
        """Whether this thread has it."""
        return self._owner == threading.get_ident()

    def try_acquire(self) -> bool:
        """Take it if it is free; return whether it was."""
        if not self._lock.acquire(blocking=False):
            return False
        self._owner = threading.get_ident()
        return True

    def release(self) -> None:
        """Let go of it."""
        self._owner = None
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self.release()

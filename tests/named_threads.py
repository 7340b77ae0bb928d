# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Threads of this process, of Python and of C++, as the kernel lists them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

SAMPLER = "rmm_uvm sample"
PATIENCE_SECONDS = 10


def threads_named(name: str) -> int:
    """Return how many threads have this name now."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return names.count(name)


def threads_ended(name: str) -> bool:
    """Return whether no thread has this name any more, with patience."""
    return becomes_true(lambda: not threads_named(name))


def thread_ids() -> set[int]:
    """Return the kernel's numbers of the threads that there are now."""
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


def others_ended(ids: set[int], patience_seconds: float = PATIENCE_SECONDS) -> bool:
    """Return whether no thread is there but some of these, with patience."""
    return becomes_true(lambda: thread_ids() <= ids, patience_seconds)


def becomes_true(ended: Callable[[], bool], patience_seconds: float = PATIENCE_SECONDS) -> bool:
    """Return whether something comes true in time."""
    # The kernel says that a thread has ended before it takes it from its list: one that was joined
    # may be there for a moment.
    until = time.monotonic() + patience_seconds
    while not ended() and time.monotonic() < until:
        time.sleep(0.001)
    return ended()

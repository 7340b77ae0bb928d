# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Threads of this process that have a name in the kernel."""

from __future__ import annotations

import time
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
    """Return whether no thread has this name any more.

    The kernel says that a thread has ended before it takes it from its list: one that was joined
    may be there for a moment.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while threads_named(name) and time.monotonic() < until:
        time.sleep(0.001)
    return not threads_named(name)

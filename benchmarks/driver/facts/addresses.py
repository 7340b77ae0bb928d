# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Alignment of managed allocations of all sizes, and which of them share a 2 MiB window."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import Any

from .answer import Answer, Question
from .session import BLOCK_BYTES, MIB, Session

SIZES_BYTES = (
    1,
    256,
    4096,
    4097,
    65536,
    MIB,
    BLOCK_BYTES - 1,
    BLOCK_BYTES,
    BLOCK_BYTES + 1,
    3 * MIB,
    4 * MIB,
    64 * MIB,
)
EACH = 4
SEED = 1


def alignment_bytes(pointer: int) -> int:
    """Return the largest power of two that divides an address; 0 for a null pointer."""
    return pointer & -pointer


def windows(pointer: int, size_bytes: int) -> range:
    """Return the numbers of the 2 MiB windows that an allocation touches."""
    return range(pointer // BLOCK_BYTES, (pointer + size_bytes - 1) // BLOCK_BYTES + 1)


def conclude(rows: list[dict[str, int]]) -> dict[str, Any]:
    """Return the least alignment of each size, and who shares a window with whom."""
    users: dict[int, list[int]] = {}
    for row in rows:
        for window in windows(row["pointer"], row["size_bytes"]):
            users.setdefault(window, []).append(row["size_bytes"])
    shared = [sizes for sizes in users.values() if len(sizes) > 1]
    least = {
        str(size): min(row["alignment_bytes"] for row in rows if row["size_bytes"] == size)
        for size in dict.fromkeys(row["size_bytes"] for row in rows)
    }
    large = [row["alignment_bytes"] for row in rows if row["size_bytes"] >= BLOCK_BYTES]
    return {
        "least_alignment_bytes": least,
        "from_2_mib_on_aligned_to_2_mib": min(large) >= BLOCK_BYTES,
        "small_ones_share_a_window": any(max(sizes) < BLOCK_BYTES for sizes in shared),
        "large_ones_share_their_last_window": any(max(sizes) >= BLOCK_BYTES for sizes in shared),
        "most_in_one_window": max(map(len, users.values())),
    }


def ask(session: Session) -> Answer:
    """Allocate four of each size in a shuffled order, all live at once."""
    order = list(SIZES_BYTES) * EACH
    random.Random(SEED).shuffle(order)
    rows = []
    with ExitStack() as live:
        for size_bytes in order:
            pointer = live.enter_context(session.managed(size_bytes))
            row = {"size_bytes": size_bytes, "pointer": pointer}
            rows.append({**row, "alignment_bytes": alignment_bytes(pointer)})
    return Answer(rows, conclude(rows))


QUESTION = Question(
    "addresses",
    "How are managed allocations aligned, and do small ones share a 2 MiB window?",
    "12 sizes from 1 B to 64 MiB, four each, shuffled, all live at once.",
    ask,
)

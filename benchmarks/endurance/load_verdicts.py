# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The bounds that a run of `gpu.py` has to keep, after each time that everything was freed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.common.harness import judged_at_most

MIB = 1 << 20
SETTLED_FRACTION = 0.25  # of the run: until then libraries load and compile
# With what malloc keeps free in its arenas: each stays as large as a thread once needed it.
MOST_RSS_GROWTH_BYTES = 16 * MIB
# Without: pages of libraries that are needed later, and what CUDA, CuPy and cuDF keep.
MOST_HELD_GROWTH_BYTES = 4 * MIB
# Free memory of an H200 changes in such steps, and of some of it a kernel driver makes page tables.
MOST_DEVICE_BYTES_KEPT = 128 * MIB
Row = Mapping[str, Any]


def load_verdicts(rows: Sequence[Row], *, with_frames: bool) -> dict[str, Any]:
    """Judge the samples of a run, each of which was taken when nothing was allocated.

    Where frames are part of the run, each part has to have computed some.
    """
    settled = rows[int(len(rows) * SETTLED_FRACTION) :]
    first, last = settled[0], rows[-1]

    def grown(name: str) -> float:
        return float(max(row[name] for row in settled) - first[name])

    def in_every_part(name: str) -> bool:
        totals = [0, *(row[name] for row in rows)]
        return all(after > before for before, after in itertools.pairwise(totals))

    return {
        "contents were looked at in every part": in_every_part("checks"),
        "no contents were lost": last["wrong"] == 0,
        "frames were computed right": last["frames_wrong"] == 0
        and (in_every_part("frame_passes") or not with_frames),
        "memory moved both ways, and was dropped, in every part": all(
            map(in_every_part, ("to_device_bytes", "to_host_bytes", "dropped_bytes"))
        ),
        "no call of the driver failed": last["failed_calls"] == 0,
        "resident memory of the process grew, bytes": judged_at_most(
            grown("rss_bytes"), MOST_RSS_GROWTH_BYTES
        ),
        "memory that malloc does not keep free grew, bytes": judged_at_most(
            grown("held_bytes"), MOST_HELD_GROWTH_BYTES
        ),
        "open files that came": judged_at_most(grown("descriptors"), 0),
        "threads that came": judged_at_most(grown("threads"), 0),
        "device memory that was not given back, bytes": judged_at_most(
            float(first["free_device_bytes"] - min(row["free_device_bytes"] for row in settled)),
            MOST_DEVICE_BYTES_KEPT,
        ),
        "no managed memory is left each time": all(row["accounted_bytes"] == 0 for row in rows),
    }

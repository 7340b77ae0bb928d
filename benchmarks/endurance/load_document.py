# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/measure/endurance.md that is computed from the load on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part
from benchmarks.endurance.document import DOCUMENT, verdict_lines

RESULT = Path(__file__).parents[1] / "results" / "endurance_gpu.json"
BEGIN = "<!-- begin: written by benchmarks/endurance/gpu.py --write -->"
END = "<!-- end: endurance_gpu -->"
LINES = 5
_MIB, _GIB, _TIB = 1 << 20, 1 << 30, 1 << 40
_HEADINGS = (
    *("pools", "operations", "contents looked at", "frames", "to the device, GiB"),
    *("to the host, GiB", "dropped, GiB", "resident, MiB", "heap, MiB", "files", "threads"),
)


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(result))


def computed_part(result: Mapping[str, Any]) -> str:
    """Return what the run was, its levels and counts as it went on, and the verdicts."""
    rows, environment = result["rows"], result["environment"]
    last = rows[-1]
    moved = last["to_device_bytes"] + last["to_host_bytes"]
    lines = [
        f"{result['run_seconds'] / 60:.1f} minutes on one {environment['device']} under a cap of "
        f"{environment['managed_limit']}: {last['operations']:,} operations in {last['rounds']} "
        f"pools, {moved / _TIB:.1f} TiB moved, {last['checks']:,} buffers and "
        f"{last['frame_passes']:,} frames looked at, {last['wrong'] + last['frames_wrong']} "
        f"of them wrong. {last['refused']:,} requests were refused by a full pool. Counts are "
        "those since the start:",
        "",
        f"| {' | '.join(_HEADINGS)} |",
        f"|{'--:|' * len(_HEADINGS)}",
    ]
    ends = {len(rows) * part // LINES for part in range(1, LINES + 1)} - {0}
    lines += [_line(rows[end - 1]) for end in sorted(ends)]
    lines += ["", *verdict_lines(result["verdicts"])]
    return "\n".join(lines)


def _line(row: Mapping[str, Any]) -> str:
    cells = (
        *(f"{row[name]:,}" for name in ("rounds", "operations", "checks", "frame_passes")),
        *(
            f"{row[name] / _GIB:.0f}"
            for name in ("to_device_bytes", "to_host_bytes", "dropped_bytes")
        ),
        *(f"{row[name] / _MIB:.0f}" for name in ("rss_bytes", "heap_bytes")),
        *(f"{row[name]}" for name in ("descriptors", "threads")),
    )
    return f"| {' | '.join(cells)} |"

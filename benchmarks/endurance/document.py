# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/measure/endurance.md that is computed from the result file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part

RESULT = Path(__file__).parents[1] / "results" / "endurance.json"
DOCUMENT = Path(__file__).parents[2] / "docs" / "measure" / "endurance.md"
BEGIN = "<!-- begin: written by benchmarks/endurance/allocations.py --write -->"
END = "<!-- end -->"
LINES = 10
_MIB, _GIB = 1 << 20, 1 << 30
_HEADINGS = (
    *("million allocations", "resident, MiB", "heap, MiB", "files", "threads", "live, MiB"),
    *("slabs, MiB", "fragmentation", "blocks / live", "to the device, GiB", "to the host, GiB"),
    *("dropped, GiB", "µs each"),
)


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(result))


def computed_part(result: Mapping[str, Any]) -> str:
    """Return what the run was, a line for each tenth of it, and the verdicts."""
    rows = result["rows"]
    moved, dropped = (
        sum(row["to_device_bytes"] + row["to_host_bytes"] for row in rows),
        sum(row["dropped_bytes"] for row in rows),
    )
    lines = [
        f"{rows[-1]['allocations']:,} allocations in {result['seconds'] / 60:.0f} minutes on "
        f"{result['environment']['cpu_count']} cores; {moved / 2**40:.1f} TiB moved between device "
        f"and host, {dropped / 2**40:.2f} TiB of dead blocks were dropped, contents looked at "
        f"{sum(row['checks'] for row in rows):,} times.",
        "",
        f"| {' | '.join(_HEADINGS)} |",
        f"|{'--:|' * len(_HEADINGS)}",
    ]
    step = max(len(rows) // LINES, 1)
    lines += [_line(rows[end - step : end]) for end in range(step, len(rows) + 1, step)]
    lines += ["", *verdict_lines(result["verdicts"])]
    return "\n".join(lines)


def verdict_lines(verdicts: Mapping[str, Any]) -> list[str]:
    """Return a table of what was found and its bounds."""
    lines = ["| verdict | | bound |", "|---|--:|--:|"]
    return lines + [_verdict(name, verdict) for name, verdict in verdicts.items()]


def _line(rows: Sequence[Mapping[str, Any]]) -> str:
    last = rows[-1]

    def mean(name: str) -> float:
        return float(sum(row[name] for row in rows) / len(rows))

    cells = (
        f"{last['allocations'] / 1e6:.1f}",
        f"{last['rss_bytes'] / _MIB:.2f}",
        f"{last['heap_bytes'] / _MIB:.2f}",
        f"{last['descriptors']}",
        f"{last['threads']}",
        f"{mean('live_bytes') / _MIB:.0f}",
        f"{last['slab_bytes'] / _MIB:.0f}",
        f"{mean('fragmentation_fraction'):.2f}",
        f"{mean('live_block_bytes') / mean('live_bytes'):.2f}",
        *(
            f"{sum(row[name] for row in rows) / _GIB:.0f}"
            for name in ("to_device_bytes", "to_host_bytes", "dropped_bytes")
        ),
        f"{mean('ns_an_allocation') / 1000:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def _verdict(name: str, verdict: Any) -> str:
    if isinstance(verdict, bool):
        return f"| {name} | {'yes' if verdict else 'no'} | yes |"
    value = verdict.get("value", verdict.get("ratio"))
    bound = next(verdict[key] for key in ("must_be_at_most", "must_be_at_least") if key in verdict)
    how = "at most" if "must_be_at_most" in verdict else "at least"
    shown = f"{value:,.0f}" if value == int(value) else f"{value:.2f}"
    return f"| {name} | {shown} | {how} {bound:,} |"

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of 0012-pool-placement.md that is computed from the result file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part

DOCUMENT = Path(__file__).parents[2] / "docs/understand/decisions/0012-pool-placement.md"
BEGIN = "<!-- begin: written by benchmarks/pool/placement.py --write -->"
END = "<!-- end -->"
SHOWN = ("mortgage", 1.5)
_MIB = 1 << 20


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(result))


def computed_part(result: Mapping[str, Any]) -> str:
    """Return the tables, the speeds, and the verdict."""
    programs = list(result["peak_bytes"])
    lines = [
        "Bytes over the link / seconds of the kernel driver, three cards together, RMM's pool 1:",
        "",
        f"| placement | {' | '.join(programs)} |",
        f"|---|{'--:|' * len(programs)}",
    ]
    for name, of_programs in result["shares"].items():
        cells = [
            f"{of_programs[program]['moved']:.2f} / {of_programs[program]['seconds']:.2f}"
            for program in programs
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "The recording on a card of its peak / 1.5, in MiB:", ""]
    lines += ["| placement | to the host | to the device | dropped | renewed | s | blocks / peak |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|"]
    lines += [_line(row) for row in result["rows"] if (row["program"], row["factor"]) == SHOWN]
    lines += [f"\nNot run, {name}: {why}." for name, why in result["not_run"].items()]
    return "\n".join([*lines, "", _speed(result["speed"]), "", _verdict(result["verdicts"])])


def _line(row: Mapping[str, Any]) -> str:
    counts = ("to_host_bytes", "to_device_bytes", "dropped_bytes", "renewed_bytes")
    moved = " | ".join(f"{row[name] / _MIB:.0f}" for name in counts)
    name, blocks = row["placement"], row["fragmentation"]
    return f"| {name} | {moved} | {row['seconds']:.3f} | {blocks:.2f} |"


def _speed(speed: Mapping[str, Any]) -> str:
    floor, adaptor, gpu = (speed[name] for name in ("floor_ns", "adaptor_ns", "on_a_gpu_ns"))
    calls_ns = speed["nanoseconds"]["calls that allocate nothing"]
    return (
        f"Allocate and free from Python: the calls alone {calls_ns:.0f} ns, our adaptor over a "
        f"pool that costs nothing {adaptor['without a budget']:.0f} ns, with a budget "
        f"{adaptor['with a budget']:.0f} ns (the floor: {floor['without a budget']:.0f} and "
        f"{floor['with a budget']:.0f} ns). On an H200: RMM's pool {gpu['Pool(Managed)']:.0f} ns, "
        f"under our adaptor {gpu['ours']:.0f} ns, RMM's arena {gpu['Arena(Managed)']:.0f} ns."
    )


def _verdict(verdicts: Mapping[str, Any]) -> str:
    def listed(name: str) -> str:
        return ", ".join(verdicts[name]) or "none"

    fast = {
        True: "A pool of our own can be within 800 ns.",
        False: "A pool of our own cannot be within 800 ns.",
        None: "Whether a pool of our own can be within 800 ns this machine does not decide.",
    }[verdicts["an own pool can be fast enough"]]
    on_time = listed("own pools that win on the driver's time")
    return (
        f"Own pools that win on traffic: {listed('own pools that win on traffic')}; on the kernel "
        f"driver's time: {on_time}. Stock placements that win on traffic: "
        f"{listed('stock placements that win on traffic')}. {fast} "
        f"**Taken: {verdicts['decision']}.**"
    )

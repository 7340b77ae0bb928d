# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A budget that acts like a smaller card, against a smaller card; simulated, no GPU.

    python benchmarks/residency/emulation.py [--json FILE]

What runs on a GPU past a budget is compared there with a baseline: first in, first out, nothing
dropped, nothing fetched, on a card that holds everything. Here that baseline runs beside the
simulated kernel driver on a card of the budget's size. What is slower there has to be slower
here: factors of a program, and programs at a factor; and the same bytes have to move. All of it
once more with RMM's prefetch adaptor over both pools. Of an allocation above the budget the large
card holds more than a small one could, for a while: such rows count for nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import exit_status, write_json
from benchmarks.residency.policy_card import FAULT_DRIVEN, MIB, Card, Way, whole_blocks
from benchmarks.residency.policy_programs import PROGRAMS, peak_bytes, pool_bytes

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")


FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
ROOMY_BYTES = 4096 * MIB
RESULT = Path(__file__).parents[1] / "results" / "residency_emulation.json"
# Closer than this the driver's own figures are no order: it is the effect of one block or two.
TIE_FRACTION = 0.1
# The budget's watermark lies below it, and blocks leave in pieces: some blocks are others.
SAME_FRACTION = 0.03
BYTES = ("to_device_bytes", "to_host_bytes")


def compared(program: str, factor: float, *, adaptor: bool = False) -> dict[str, Any]:
    """Run one program both ways; return seconds and bytes to the host."""
    size_bytes = whole_blocks(peak_bytes(program) / factor)
    alone = Way("driver", prefetch="never", adaptor=adaptor)
    driver = Card(size_bytes, alone, pool_bytes(program))
    way = Way("fault-driven", FAULT_DRIVEN, adaptor=adaptor)
    emulated = Card(ROOMY_BYTES, way, pool_bytes(program), budget_bytes=size_bytes)
    for card in (driver, emulated):
        PROGRAMS[program](card)
    return {
        **{"program": program, "factor": factor, "budget_bytes": size_bytes},
        **taken(driver, "driver"),
        **taken(emulated, "emulated"),
        "ratio": emulated.figures().seconds / driver.figures().seconds,
        "too_large": (emulated.prefetcher.residency() or {})["too_large"],
    }


def taken(card: Card, name: str) -> dict[str, float]:
    """Return what a program took on a card: time, and the bytes and faults that explain it."""
    figures, counts = card.figures(), card.device.statistics()
    return {
        f"{name}_seconds": figures.seconds,
        f"{name}_to_device_bytes": figures.to_device_bytes,
        f"{name}_to_host_bytes": figures.to_host_bytes,
        f"{name}_faults": counts["gpu_faults"],
        f"{name}_prefetched_bytes": card.prefetcher.statistics()["prefetched_bytes"],
    }


def counting(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows whose budget is a smaller card."""
    return [row for row in rows if not row["too_large"]]


def moves_the_same(row: dict[str, Any], figures: Sequence[str] = (*BYTES, "faults")) -> bool:
    """Return whether a row moves the kernel driver's bytes, with its faults, each way."""
    return all(
        abs(row[f"emulated_{what}"] / row[f"driver_{what}"] - 1) <= SAME_FRACTION
        for what in figures
    )


def others_prefetched(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the cards on which other bytes move with RMM's prefetch adaptor."""
    return [
        f"{row['program']} / {row['factor']:g}"
        for row in counting(rows)
        if not moves_the_same(row, BYTES)
    ]


def out_of_order(rows: Sequence[dict[str, Any]], same: str) -> list[str]:
    """Return the pairs, of one `same`, in another order here than with the kernel driver."""
    return [
        f"{a['program']} / {a['factor']:g} and {b['program']} / {b['factor']:g}"
        for a, b in itertools.combinations(counting(rows), 2)
        if a[same] == b[same]
        and abs(a["driver_seconds"] - b["driver_seconds"])
        > TIE_FRACTION * max(a["driver_seconds"], b["driver_seconds"])
        and (a["driver_seconds"] < b["driver_seconds"])
        != (a["emulated_seconds"] < b["emulated_seconds"])
    ]


def main() -> int:
    """Run everything; return 1 where an order is another one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE")
    options = parser.parse_args()
    cases = list(itertools.product(PROGRAMS, FACTORS))
    rows = [compared(*case) for case in cases]
    prefetched = [compared(*case, adaptor=True) for case in cases]
    for row in (*rows, *prefetched):
        print(json.dumps(row))
    wrong = {same: out_of_order(rows, same) for same in ("program", "factor")}
    result = {
        **{"rows": rows, "tie_fraction": TIE_FRACTION, "same_fraction": SAME_FRACTION},
        **{"prefetched_rows": prefetched, "other_bytes_prefetched": others_prefetched(prefetched)},
        "out_of_order": wrong,
        "verdicts": {
            "factors of a program are in the same order": not wrong["program"],
            "programs at a factor are in the same order": not wrong["factor"],
            "the same bytes move, with the same faults": all(map(moves_the_same, counting(rows))),
            "with RMM's prefetches the same bytes move": not others_prefetched(prefetched),
            "nothing is slower than with the kernel driver": all(
                row["ratio"] <= 1 for row in counting(rows)
            ),
        },
    }
    write_json(options.json, "residency_emulation", result)
    return exit_status(result["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())

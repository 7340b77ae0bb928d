# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Eviction policies on cards that are too small: true oversubscription, on the simulated device.

    python benchmarks/residency/policies.py [--json FILE] [--write]

A recorded pipeline and four programs run on cards of their peak over 1.1 to 4, in every way of
keeping memory there. Nothing runs in threads and figures are modelled: they are the same at every
run. Each row has a process and a time limit of its own. Needs no GPU; about five minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import exit_status, judged, write_json
from benchmarks.residency.policy_card import (
    BASELINES,
    CHOICES,
    DEFAULT_NAME,
    DRIVER_ALONE,
    MACHINE,
    MARGIN_BYTES,
    WAYS,
    Card,
    whole_blocks,
)
from benchmarks.residency.policy_document import DOCUMENT, document_with
from benchmarks.residency.policy_programs import (
    ITERATIONS,
    PROGRAMS,
    RECORDED,
    ROUNDS,
    peak_bytes,
    pool_bytes,
)

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")


FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
LIMIT_SECONDS = 30.0
RESULT = Path(__file__).parents[1] / "results" / "residency_policies.json"
Row = Mapping[str, Any]


def row(program: str, factor: float, way_name: str) -> dict[str, Any]:
    """Run one program on one card in one way."""
    way = next(way for way in WAYS if way.name == way_name)
    card = Card(whole_blocks(peak_bytes(program) / factor), way, pool_bytes(program))
    PROGRAMS[program](card)
    return {
        **{"program": program, "factor": factor, "way": way_name},
        "device_bytes": card.device_bytes,
        **dataclasses.asdict(card.figures()),
    }


def _send_row(to: Connection, case: tuple[str, float, str]) -> None:
    to.send(row(*case))


def rows_of(
    cases: Iterable[tuple[str, float, str]],
) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Return the rows, and the cases that did not end in time."""
    rows, not_ended = [], []
    processes = multiprocessing.get_context("fork")
    for case in cases:
        here, there = processes.Pipe(duplex=False)
        process = processes.Process(target=_send_row, args=(there, case))
        process.start()
        there.close()
        try:
            if here.poll(LIMIT_SECONDS):
                rows.append(here.recv())
            else:
                not_ended.append(list(case))
                print("did not end:", end=" ")
        finally:
            process.kill()
            process.join()
        print(*case, flush=True)
    return rows, not_ended


def total_seconds(rows: Sequence[Row], programs: Iterable[str]) -> dict[str, float]:
    """Return each policy's time over all cards; only of policies that ended on all of them."""
    chosen = set(programs)
    of_ways: dict[str, list[float]] = {}
    for one in rows:
        if one["program"] in chosen:
            of_ways.setdefault(one["way"], []).append(one["seconds"])
    cards = max(map(len, of_ways.values()))
    return {way: sum(times) for way, times in of_ways.items() if len(times) == cards}


def slower_than_the_driver(rows: Sequence[Row]) -> list[str]:
    """Return the policies that lose to the fastest baseline on a recording at 1.25 or more."""
    seconds = {(one["program"], one["factor"], one["way"]): one["seconds"] for one in rows}
    return [
        f"{program} / {factor}, {way}"
        for (program, factor, way), taken in seconds.items()
        if program in RECORDED
        and way in CHOICES
        and factor >= 1.25
        and taken > min(seconds[program, factor, alone] for alone in BASELINES)
    ]


def over_the_driver(rows: Sequence[Row]) -> list[float]:
    """Return the default's time over that of the kernel driver alone, of each card."""
    seconds = {(one["program"], one["factor"], one["way"]): one["seconds"] for one in rows}
    return [
        taken / seconds[program, factor, DRIVER_ALONE]
        for (program, factor, way), taken in seconds.items()
        if way == DEFAULT_NAME
    ]


def verdicts(rows: Sequence[Row], not_ended: Sequence[Any]) -> dict[str, Any]:
    """Return what has to hold."""
    over = over_the_driver(rows)
    on_traces = total_seconds(rows, RECORDED)
    best = min((way for way in CHOICES if way in on_traces), key=on_traces.__getitem__)
    return {
        "every row ended": not not_ended,
        "the default wins on the recordings": best == DEFAULT_NAME,
        "no policy is slower than the kernel driver at 1.25 or more": not slower_than_the_driver(
            rows
        ),
        "the default / the kernel driver alone, median": judged(statistics.median(over), 0.6),
        "the default / the kernel driver alone, dearest": judged(max(over), 1.02),
    }


def main() -> int:
    """Run everything; return 1 if a verdict is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args()
    for program in PROGRAMS:
        peak_bytes(program)  # once, before processes part
    rows, not_ended = rows_of(
        (program, factor, way.name) for program in PROGRAMS for factor in FACTORS for way in WAYS
    )
    result = {
        **{"machine": MACHINE, "margin_bytes": MARGIN_BYTES, "default": DEFAULT_NAME},
        **{"iterations": ITERATIONS, "rounds": ROUNDS, "limit_seconds": LIMIT_SECONDS},
        "peak_bytes": {program: peak_bytes(program) for program in PROGRAMS},
        "rows": rows,
        "not_ended": not_ended,
        "verdicts": verdicts(rows, not_ended),
    }
    write_json(options.json, "residency_policies", result)
    if options.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), result))
    return exit_status(result["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())

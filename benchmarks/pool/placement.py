# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Does a pool that knows residency beat RMM's pool? Traffic under a budget, and speed.

    python benchmarks/pool/placement.py [--json FILE] [--write]

The programs of `residency/policies.py`, and one that is hard on a pool, run on simulated cards of
their peak over 1.25 to 2 under a budget, with different placements over the same managed memory:
RMM's pool, what RMM has to combine with it, and models of a pool of our own. Needs no GPU; where
there is one, RMM's arena is compared too. Three minutes. `--write` writes the figures into
docs/understand/decisions/0012-pool-placement.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import write_json
from benchmarks.pool import placement_speed
from benchmarks.pool.placement_document import DOCUMENT, document_with
from benchmarks.pool.placement_programs import PROGRAMS, SLAB_FACTOR, peak_bytes, slab_bytes
from benchmarks.pool.placement_ways import (
    BASE,
    CONTROL,
    OWN,
    PLACEMENTS,
    STOCK,
    PlacedCard,
    lacks_gpu,
)
from benchmarks.residency.policy_card import DEFAULT_NAME, MACHINE, WAYS, whole_blocks
from benchmarks.residency.policy_programs import RECORDED

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")


FACTORS = (1.25, 1.5, 2.0)
RESULT = Path(__file__).parents[1] / "results" / "pool_placement.json"
# Less than a win of 5 % is none; more than a loss of 2 % on any program is too much.
MOST_OF_RECORDED = 0.95
MOST_OF_ANY = 1.02
Row = Mapping[str, Any]


def row(program: str, factor: float, placement: str) -> dict[str, Any]:
    """Run one program on one card with one placement, under the default policy.

    Raises
    ------
    RuntimeError
        If the placement cannot be made here: the arena without a GPU.
    """
    way = next(way for way in WAYS if way.name == DEFAULT_NAME)
    make = PLACEMENTS[placement]
    card = PlacedCard(
        whole_blocks(peak_bytes(program) / factor),
        way,
        slab_bytes(program),
        make_pool=lambda managed: make(managed, slab_bytes(program)),
    )
    PROGRAMS[program](card)
    figures = dataclasses.asdict(card.figures())
    kept = card.prefetcher.residency()
    assert kept is not None
    return {
        **{"program": program, "factor": factor, "placement": placement},
        **figures,
        "renewed_bytes": kept["renewed_bytes"],
        "slab_bytes": card.prefetcher.slab_bytes,
        "used_block_bytes": card.used_block_bytes,
        "peak_block_bytes": card.peak_block_bytes,
        "fragmentation": round(card.used_block_bytes / card.mr.peak_bytes, 4),
    }


def rows_of(
    placements: Iterable[str], programs: Iterable[str] = tuple(PROGRAMS)
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the rows, and why which placements were not run."""
    rows, not_run = [], {}
    for placement in placements:
        try:
            for program in programs:
                rows += [row(program, factor, placement) for factor in FACTORS]
                print(program, placement, flush=True)
        except RuntimeError as error:
            if not lacks_gpu(error):
                raise
            not_run[placement] = "the CUDA runtime has no device here"
    return rows, not_run


def moved_bytes(one: Row) -> int:
    """Return what crossed the link, both ways."""
    return int(one["to_device_bytes"] + one["to_host_bytes"])


def driver_seconds(one: Row) -> float:
    """Return what the kernel driver worked."""
    return float(one["seconds"])


def share(rows: Sequence[Row], placement: str, what: Any, programs: Iterable[str]) -> float:
    """Return what a placement took over all cards, as a share of what RMM's pool took."""
    chosen = set(programs)

    def total(name: str) -> float:
        return sum(
            what(one) for one in rows if one["placement"] == name and one["program"] in chosen
        )

    return float(total(placement) / total(BASE))


def shares(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """Return bytes and seconds of each placement and program against RMM's pool."""
    names = dict.fromkeys(str(one["placement"]) for one in rows)
    programs = dict.fromkeys(str(one["program"]) for one in rows)
    return {
        name: {
            program: {
                "moved": round(share(rows, name, moved_bytes, [program]), 4),
                "seconds": round(share(rows, name, driver_seconds, [program]), 4),
            }
            for program in programs
        }
        for name in names
    }


def wins(of_programs: Mapping[str, Mapping[str, float]], what: str) -> bool:
    """Tell whether a placement is ahead on every recording and loses on no program."""
    return all(of_programs[name][what] <= MOST_OF_RECORDED for name in RECORDED) and all(
        one[what] <= MOST_OF_ANY for one in of_programs.values()
    )


def verdicts(
    found: Mapping[str, Mapping[str, Mapping[str, float]]], speed: Mapping[str, Any]
) -> dict[str, Any]:
    """Return who wins, and what follows."""
    traffic = [name for name in OWN if name in found and wins(found[name], "moved")]
    fast = placement_speed.fast_enough(speed)
    return {
        "the model of RMM's pool moves what RMM's pool moves": all(
            one == {"moved": 1.0, "seconds": 1.0} for one in found[CONTROL].values()
        ),
        "own pools that win on traffic": traffic,
        "own pools that win on the driver's time": [
            name for name in OWN if name in found and wins(found[name], "seconds")
        ],
        "stock placements that win on traffic": [
            name
            for name in found
            if name not in (BASE, CONTROL, *OWN) and wins(found[name], "moved")
        ],
        "an own pool can be fast enough": fast,
        "decision": "a pool of our own" if traffic and fast else BASE,
    }


def main() -> int:
    """Run everything; return 1 if the model is no model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    speed = placement_speed.measured(options.rounds, 20_000)
    rows, not_run = rows_of(PLACEMENTS)
    found = shares(rows)
    result = {
        **{"machine": MACHINE, "way": DEFAULT_NAME, "slab_factor": SLAB_FACTOR},
        "stock": list(STOCK),
        "peak_bytes": {program: peak_bytes(program) for program in PROGRAMS},
        "rows": rows,
        "not_run": not_run,
        "shares": found,
        "speed": speed,
        "verdicts": verdicts(found, speed),
    }
    write_json(options.json, "pool_placement", result)
    if options.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), result))
    return 0 if result["verdicts"]["the model of RMM's pool moves what RMM's pool moves"] else 1


if __name__ == "__main__":
    raise SystemExit(main())

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs that calls of libcudf are seen, while everything fits.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/pool/seeing_cost.py --json FILE
        [--programs cudf,pds-h] [--data 4GiB,1GiB]

Calls of a round that are looked at, times what one look costs more, over the seconds of a round. A
difference of rounds with and without would be too small to see. Programs are those of
past_the_edge/run.py, with everything resident.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rmm

import rmm_uvm
from rmm_uvm.integrations.seen.announcer import Announcer
from rmm_uvm.integrations.seen.libcudf import observe
from rmm_uvm.support.units import parse_bytes

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.past_the_edge.programs import PROGRAMS

MOST_FRACTION = 0.005
CALLS, TIMINGS = 20_000, 31
ROUNDS = 7  # the first two warm up


class Counting:
    """In the place of a `ManagedResidency`: counts how often it is asked."""

    budget = None

    def __init__(self) -> None:
        self.looks = 0

    @property
    def all_present(self) -> bool:
        """True, and counted."""
        self.looks += 1
        return True


def microseconds_of_a_look(residency: Any) -> float:
    """Return what a call that is seen takes more than one that is not; the median of timings."""

    def nothing(_column: Any, stream: Any = None) -> Any:
        return stream

    seen = Announcer("cuDF", [residency]).before(
        "nothing", nothing, lambda _args, _kwargs: ([], 0), only_read=True
    )

    def seconds(function: Callable[..., Any]) -> float:
        begin = time.perf_counter()
        for _ in range(CALLS):
            function(None, stream=None)
        return time.perf_counter() - begin

    more = [seconds(seen) - seconds(nothing) for _ in range(TIMINGS)]
    return statistics.median(more) / CALLS * 1e6


def row_of(name: str, data_bytes: int, look_microseconds: float) -> dict[str, Any]:
    """Return the row of a program."""
    kind = PROGRAMS[name]
    if hasattr(kind, "prepare"):
        kind.prepare(data_bytes, kind.PIECES)
    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), 3 * data_bytes // 256 * 256)
    previous = rmm.mr.get_current_device_resource()
    rmm.mr.set_current_device_resource(pool)
    program = kind(data_bytes, kind.PIECES)
    program.make()

    def round_seconds() -> float:
        begin = time.perf_counter()
        for number in range(program.operations):
            program.operation(number)
        return time.perf_counter() - begin

    seconds = statistics.median([round_seconds() for _ in range(ROUNDS)][2:])
    counting = Counting()
    undo = observe([counting])  # type: ignore[list-item] # it is asked as a residency is
    round_seconds()
    undo()
    program.drop()
    rmm.mr.set_current_device_resource(previous)
    return {
        "program": name,
        "data_bytes": data_bytes,
        "round_seconds": seconds,
        "calls": counting.looks,
        "look_microseconds": look_microseconds,
        "fraction": counting.looks * look_microseconds / 1e6 / seconds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", default="cudf,pds-h")
    parser.add_argument("--data", default="4GiB,1GiB", help="of each")
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    driver = rmm_uvm.cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    mr = rmm_uvm.managed_pool(driver=driver, device_budget="1GiB", maximum_pool_size="512MiB")
    look = microseconds_of_a_look(mr.managed_mr.residency)
    sizes = [parse_bytes(size, name="--data") for size in asked.data.split(",")]
    rows = [row_of(*each, look) for each in zip(asked.programs.split(","), sizes, strict=True)]
    verdicts = {
        f"{row['program']}: at most 0.5 %": row["fraction"] <= MOST_FRACTION for row in rows
    }
    for row in rows:
        print(row)
    results = {"bound": MOST_FRACTION, "rows": rows, "verdicts": verdicts}
    harness.write_json(asked.json, "seeing_cost", results, harness.environment())
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())

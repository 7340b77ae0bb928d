# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The discard paper's FIR and hash join under a budget, beside its ratios; simulated, no GPU.

    python benchmarks/residency/discards.py [--json FILE]

The paper (IISWC'22) discards in programs written for it; here a program frees, and the budget
drops what is dead. Buffers come from a pool of equal ones that hands them out in turn, so that
memory is as stale as in the paper's programs, which keep theirs for ever. Machine and sizes are
those of `published/uvm_discard.py`, whose simulated figures for the paper's own programs are given
too; sizes are a quarter of the paper's, and seconds and bytes four times what came out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")

import rmm

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import exit_status, judged, write_json
from benchmarks.residency.policy_card import FAULT_DRIVEN, MARGIN_BYTES, Card, Way, whole_blocks

MACHINE = "rtx3080ti-pcie4"
SCALE = 4
GB = 10**9
FACTORS = (2, 3, 4)
PUBLISHED = Path(__file__).parents[1] / "published" / "data" / "uvm_discard.json"
SIMULATED = Path(__file__).parents[1] / "results" / "published" / "uvm_discard.json"
RESULT = Path(__file__).parents[1] / "results" / "residency_discards.json"
# The same prefetches as the paper's programs make; ours drops, theirs discards.
WAYS = {
    "fault-driven": Way("fault-driven", FAULT_DRIVEN),
    "fetching": Way("fetching", {"policy": "fifo", "discard_dead": False, "ahead": False}),
    "budget": Way("budget", {"ahead": False}),
}


@dataclass(frozen=True)
class Program:
    """Buffers of one size, and what is done with them after `inputs` have been filled."""

    inputs: int
    buffers: int
    buffer_bytes: int
    run: Callable[[Card, list[int], int], None]

    @property
    def footprint_bytes(self) -> int:
        """What all buffers take."""
        return self.buffers * self.buffer_bytes


def _fir(memory: Card, windows: list[int], nbytes: int) -> None:
    for window in windows:
        target = memory.allocate(nbytes)
        memory.read(window)
        memory.use(target, nbytes, write=True)
        memory.free(window)


def _hash_join(memory: Card, parts: list[int], nbytes: int) -> None:
    for _ in range(3):
        outside = []
        for part in parts:
            outside.append(memory.allocate(nbytes))
            memory.read(part)
            memory.use(outside[-1], nbytes, write=True)
            memory.free(part)
        parts = outside
    for part in parts:
        memory.read(part)


PROGRAMS = {
    "fir": Program(48, 96, whole_blocks(6.2 * GB / 48 / SCALE), _fir),
    "hash join": Program(4, 12, whole_blocks(3.2 * GB / 4 / SCALE), _hash_join),
}


def case(program_name: str, factor: float, way: Way) -> dict[str, float]:
    """Run one program; return seconds and bytes as of the paper's sizes, inputs being there."""
    program = PROGRAMS[program_name]

    def equal_buffers(upstream: Any) -> Any:
        return rmm.mr.FixedSizeMemoryResource(upstream, program.buffer_bytes, program.buffers)

    memory = Card(
        whole_blocks(program.footprint_bytes / factor) + MARGIN_BYTES,
        way,
        program.footprint_bytes,
        make_pool=equal_buffers,
        machine=MACHINE,
    )
    inputs = [memory.make(program.buffer_bytes) for _ in range(program.inputs)]
    for buffer in inputs:
        memory.send_out(buffer)
    before = memory.figures()
    program.run(memory, inputs, program.buffer_bytes)
    after = memory.figures()
    return {
        "seconds": (after.seconds - before.seconds) * SCALE,
        "to_device_gb": (after.to_device_bytes - before.to_device_bytes) * SCALE / GB,
        "to_host_gb": (after.to_host_bytes - before.to_host_bytes) * SCALE / GB,
    }


def compared(program: str, factor: int) -> dict[str, Any]:
    """Run one program in all ways; computing takes what the paper's column that fits took."""
    theirs = json.loads(PUBLISHED.read_text())
    figures = theirs["pcie4"][program]
    place = theirs["factors_percent"].index(factor * 100)
    ways = {name: case(program, factor, way) for name, way in WAYS.items()}
    computing = figures["prefetch_ms"][0] / 1e3
    total = {name: one["seconds"] + computing for name, one in ways.items()}
    return {
        **{"program": program, "factor": factor, "ways": ways},
        "computing_seconds": computing,
        "against_fault_driven": total["budget"] / total["fault-driven"],
        "against_fetching": total["budget"] / total["fetching"],
        "to_host_against_fetching": ways["budget"]["to_host_gb"] / ways["fetching"]["to_host_gb"],
        "published": figures["discard_ms"][place] / figures["prefetch_ms"][place],
        "published_simulated": _simulated_ratio(program, factor),
        "published_to_host": figures["discard_dtoh_gb"][place] / figures["prefetch_dtoh_gb"][place],
    }


def _simulated_ratio(program: str, factor: int) -> float:
    """Return what discarding wins in the paper's own program on the same simulator."""
    rows = json.loads(SIMULATED.read_text())["table"]["rows"]
    ours = {row["case"]: row["ours"] for row in rows if row["quantity"] == "time"}
    case_of = f"{program}, pcie4, {{}}, {factor * 100} %"
    return float(ours[case_of.format("discard")] / ours[case_of.format("prefetch")])


def verdicts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the ratios beside the paper's, and beside its programs' on the same simulator."""
    found = {}
    for row in rows:
        name = f"{row['program']}, {row['factor']}x"
        found |= {
            f"{name}: time against fault-driven, the paper's ratio": judged(
                row["against_fault_driven"], row["published"]
            ),
            f"{name}: time against fetching, the paper's programs simulated": judged(
                row["against_fetching"], row["published_simulated"]
            ),
            f"{name}: to the host against fetching, the paper's ratio": judged(
                row["to_host_against_fetching"], row["published_to_host"]
            ),
        }
    return found


def main() -> int:
    """Run everything; return 1 where the paper's ratio is not reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE")
    options = parser.parse_args()
    rows = [compared(program, factor) for program in PROGRAMS for factor in FACTORS]
    for row in rows:
        print(json.dumps(row))
    result = {"machine": MACHINE, "scale": SCALE, "rows": rows, "verdicts": verdicts(rows)}
    write_json(options.json, "residency_discards", result)
    return exit_status(result["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())

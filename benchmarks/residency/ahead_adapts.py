# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How far to fetch ahead: fixed parts of the budget against one that is learnt, simulated.

    python benchmarks/residency/ahead_adapts.py [--json FILE] [--models NAME ...]

Steps of the models of `training/policies.py` run while the budget's thread goes on piece by piece,
as the link has time; the fourth step counts. The programs of `policies.py` run whole: there
computing takes no time, and the thread does all it has to do at once. Models are run like that as
well, for comparison. Figures are modelled, the same at every run. Needs torch and transformers, and
no GPU; about four minutes on two cores.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")


from rmm_uvm.planner.trials.shadow_device import ShadowDevice
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import load_machine
from rmm_uvm.torch import Program

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import exit_status, write_json
from benchmarks.residency.policy_card import MACHINE, MARGIN_BYTES, Card, Way, whole_blocks
from benchmarks.residency.policy_programs import PROGRAMS, peak_bytes, pool_bytes
from benchmarks.training.policies import counted_step
from benchmarks.training.recordings import record

FACTORS = (1.25, 1.5, 2.0, 3.0)
COUNTED = 3  # the fourth: what is learnt is learnt in the second and third
ADAPTS, EIGHTH, HALF = "adapts", "1/8", "1/2"
PARTS = {"1/32": 32, EIGHTH: 8, HALF: 2}  # of the budget
WAYS = (*PARTS, ADAPTS)
PACED, AT_ONCE, LOOP = "training", "training, all at once", "loop"
TRANSFORMERS = ("gpt2", "gpt2-medium", "bert", "whisper-small")
MOST_SLOWER = 1.02  # than an eighth of the budget
RESULT = Path(__file__).parents[1] / "results" / "ahead_adapts_simulated.json"
Row = Mapping[str, Any]


def budget_settings(way: str, budget_bytes: int) -> dict[str, Any]:
    """Return arguments of a budget that fetches ahead in one way."""
    part = PARTS.get(way)
    return {
        **{"policy": "repeat", "ahead": True},
        "ahead_bytes": None if part is None else budget_bytes // part,
    }


def training_row(kind: str, name: str, program: Program, factor: float, way: str) -> dict[str, Any]:
    """Return what the counted step of a model took on one card."""
    device_bytes = whole_blocks(program.peak_bytes / factor)
    budget_bytes = device_bytes - MARGIN_BYTES
    card = ShadowDevice(
        device_bytes,
        load_machine(MACHINE),
        Budget(budget_bytes, **budget_settings(way, budget_bytes)),
        pool_bytes=program.peak_bytes * 5 // 4,
        paced=kind == PACED,
    )
    took = counted_step(program, card, COUNTED)
    return {
        **{"kind": kind, "program": name, "factor": factor, "way": way},
        "budget_bytes": budget_bytes,
        "seconds": took.seconds,
        "compute_seconds": took.compute_seconds,
        "to_device_bytes": took.to_device_bytes,
        "to_host_bytes": took.to_host_bytes,
        "ahead_bytes": card.ahead_bytes,
    }


def loop_row(name: str, factor: float, way: str) -> dict[str, Any]:
    """Return what a whole program took on one card."""
    device_bytes = whole_blocks(peak_bytes(name) / factor)
    budget_bytes = device_bytes - MARGIN_BYTES
    card = Card(device_bytes, Way(way, budget_settings(way, budget_bytes)), pool_bytes(name))
    PROGRAMS[name](card)
    took = card.figures()
    kept: Any = card.prefetcher.residency()
    return {
        **{"kind": LOOP, "program": name, "factor": factor, "way": way},
        "budget_bytes": budget_bytes,
        "seconds": took.seconds,
        "compute_seconds": 0.0,
        "to_device_bytes": took.to_device_bytes,
        "to_host_bytes": took.to_host_bytes,
        "ahead_bytes": kept["ahead_bytes"],
    }


def ratios(rows: Iterable[Row], kind: str, way: str, other: str = EIGHTH) -> dict[Any, float]:
    """Return times of a way over those of another one, by program and factor."""
    seconds = {
        (one["program"], one["factor"], one["way"]): one["seconds"]
        for one in rows
        if one["kind"] == kind
    }
    return {
        (program, factor): taken / seconds[program, factor, other]
        for (program, factor, its), taken in seconds.items()
        if its == way
    }


def mean(of: Iterable[float]) -> float:
    """Return a geometric mean."""
    logs = [math.log(one) for one in of]
    return math.exp(sum(logs) / len(logs))


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return means and extremes over an eighth of the budget, by kind and way."""
    found: dict[str, Any] = {}
    for kind in (PACED, AT_ONCE, LOOP):
        for way in WAYS:
            if of := ratios(rows, kind, way):
                worst = max(of, key=of.__getitem__)
                found[f"{kind}: {way}"] = {
                    "mean": mean(of.values()),
                    "least": min(of.values()),
                    "most": of[worst],
                    "most_at": list(worst),
                }
    return found


def verdicts(rows: Sequence[Row]) -> dict[str, bool]:
    """Return what has to hold."""
    training, loops = (ratios(rows, kind, ADAPTS) for kind in (PACED, LOOP))
    over_half = ratios(rows, LOOP, ADAPTS, HALF)
    transformers = [ratio for (name, _), ratio in training.items() if name in TRANSFORMERS]
    return {
        "never more than 2 % slower than an eighth": max(
            [*training.values(), *loops.values()], default=math.inf
        )
        <= MOST_SLOWER,
        "transformers are faster than with an eighth": bool(transformers)
        and mean(transformers) < 0.99,
        "loops are faster than with half": bool(over_half) and mean(over_half.values()) < 0.98,
        "a fixed one never changes": all(
            one["ahead_bytes"] == one["budget_bytes"] // PARTS[one["way"]]
            for one in rows
            if one["way"] in PARTS
        ),
    }


def _rows_of_model(name: str) -> list[dict[str, Any]]:
    program = record(name)
    cases = [(PACED, way) for way in WAYS] + [(AT_ONCE, way) for way in (EIGHTH, ADAPTS)]
    return [
        training_row(kind, name, program, factor, way) for factor in FACTORS for kind, way in cases
    ]


def main() -> int:
    """Run everything; return 1 if a verdict is missed."""
    from benchmarks.training import models

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE")
    parser.add_argument("--models", nargs="+", choices=models.NAMES)
    options = parser.parse_args()
    names = options.models or models.NAMES
    rows = []
    with multiprocessing.get_context("spawn").Pool(min(2, os.cpu_count() or 1)) as pool:
        for name, part in zip(names, pool.imap(_rows_of_model, names), strict=True):
            print(name, flush=True)
            rows += part
    rows += [loop_row(name, factor, way) for name in PROGRAMS for factor in FACTORS for way in WAYS]
    result = {
        **{"machine": MACHINE, "margin_bytes": MARGIN_BYTES, "counted": COUNTED + 1},
        "rows": rows,
        "summary": summary(rows),
        "verdicts": verdicts(rows),
    }
    write_json(options.json, "ahead_adapts", result)
    return exit_status(result["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())

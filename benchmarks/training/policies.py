# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training on cards that are too small: eviction policies side by side, on the simulated device.

    python benchmarks/training/policies.py [--json FILE] [--write]
    python benchmarks/training/policies.py --json FILE [--models NAME ...] [--dtypes fp32 bf16]

A step of each model of `models.py` in full size, in FP32 and under autocast to BF16, is
recorded on fake tensors, several times in a row, and done again on cards of its peak over 1.25 to
4 in every way of keeping memory there: true oversubscription. The budget's thread goes on piece by
piece while kernels compute, as on a GPU. One steady step counts. Figures are modelled, the same at
every run. Needs torch and transformers, and no GPU; three to six minutes on two cores.

A part, of some models or of one type, goes to a file of its own and ends with 1: not every row is
there.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")


from rmm_uvm.planner.trials.shadow_device import ShadowDevice
from rmm_uvm.planner.trials.shadow_statistics import ShadowStatistics
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import DriverSettings, load_machine
from rmm_uvm.torch import Program, Roofline

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import exit_status, write_json
from benchmarks.residency.policy_card import MACHINE, MARGIN_BYTES, Way, whole_blocks
from benchmarks.training import models as torch_models
from benchmarks.training.ideal import least
from benchmarks.training.policy_document import DOCUMENT, document_with
from benchmarks.training.recordings import ITERATIONS, record, used_bytes

FACTORS = (1.25, 1.5, 2.0, 3.0, 4.0)
COUNTED = 2  # the third: its order is known from the second, and what follows it is recorded
DTYPES = ("fp32", "bf16")
IDEAL, ON_DEMAND, KNOWN = "ideal", "on-demand", "known order"
DRIVER, ADAPTOR = "driver prefetch", "RMM's prefetches"
BASELINES = (ON_DEMAND, DRIVER, ADAPTOR)
WAYS = (
    Way(ON_DEMAND, prefetch="never", neighbours=False),
    Way(DRIVER, prefetch="never"),
    Way(ADAPTOR, prefetch="never", adaptor=True),
    Way("correlation", {"policy": "correlation"}),
    Way(KNOWN, {"policy": "repeat"}),
    Way(f"{KNOWN}, ahead", {"policy": "repeat", "ahead": True}),
)
RESULT = Path(__file__).parents[1] / "results" / "torch_policies.json"
Row = Mapping[str, Any]
Case = tuple[str, str]  # model and dtype


class PrefetchingCard(ShadowDevice):
    """A card whose allocations are prefetched, as by `rmm.mr.PrefetchResourceAdaptor`."""

    def allocate(self, nbytes: int) -> int:
        """Allocate, and have the kernel driver bring it."""
        address = super().allocate(nbytes)
        self.device.prefetch(address, nbytes)
        self._wait()
        return address


def row(case: Case, program: Program, factor: float, way: Way | None) -> dict[str, Any]:
    """Return what the counted step took on one card in one way; None is the ideal."""
    name, dtype = case
    device_bytes = whole_blocks(program.peak_bytes / factor)
    begin, end = program.marks[COUNTED - 1], program.marks[COUNTED]
    what = {"model": name, "dtype": dtype, "factor": factor, "device_bytes": device_bytes}
    machine = load_machine(MACHINE)
    if way is None:
        bound = least(program, device_bytes, begin, end)
        return {
            **what,
            "way": IDEAL,
            "seconds": bound.seconds(machine),
            "to_device_bytes": bound.to_device_bytes,
            "to_host_bytes": bound.to_host_bytes,
            "hit_rate": bound.present_bytes / max(bound.wanted_bytes, 1),
        }
    budget = None
    if way.budget is not None:
        budget = Budget(device_bytes - MARGIN_BYTES, **way.budget)
    kind = PrefetchingCard if way.adaptor else ShadowDevice
    card = kind(
        device_bytes,
        machine,
        budget,
        prefetch=way.prefetch,  # type: ignore[arg-type]
        driver=DriverSettings(prefetch=way.neighbours),
        pool_bytes=program.peak_bytes * 5 // 4,
        paced=True,
    )
    took = counted_step(program, card)
    return {
        **what,
        "way": way.name,
        "seconds": took.seconds,
        "to_device_bytes": took.to_device_bytes,
        "to_host_bytes": took.to_host_bytes,
        "hit_rate": took.hit_rate,
    }


def counted_step(program: Program, card: ShadowDevice, counted: int = COUNTED) -> ShadowStatistics:
    """Do a program's steps on a card up to the one that counts; return what that took."""
    begin, end = program.marks[counted - 1], program.marks[counted]
    replay = program.replayer(card)
    replay(0, begin)
    before = card.statistics()
    replay(begin, end)
    return card.statistics().since(before)


def model_facts(case: Case, program: Program) -> dict[str, Any]:
    """Return what does not depend on the card."""
    name, dtype = case
    begin, end = program.marks[COUNTED - 1], program.marks[COUNTED]
    used = used_bytes(program, begin, end)
    return {
        **{"model": name, "dtype": dtype, "peak_bytes": program.peak_bytes},
        "kernels": len(used),
        "mean_used_bytes": sum(used) / len(used),
        "most_used_bytes": max(used),
        "compute_seconds": least(program, program.peak_bytes * 2, begin, end).compute_seconds,
    }


def case_of(row: Row) -> Case:
    """Return which model in which type a row is of."""
    return row["model"], row["dtype"]


def slower_than(ways: Sequence[str], rows: Sequence[Row]) -> list[list[Any]]:
    """Return model, type and factor of the cards on which one of some ways is faster."""
    seconds = {(*case_of(one), one["factor"], one["way"]): one["seconds"] for one in rows}
    return [
        list(card)
        for (*card, way), taken in seconds.items()
        if way == KNOWN and taken > min(seconds.get((*card, one), math.inf) for one in ways)
    ]


def verdicts(rows: Sequence[Row], models: Sequence[Row]) -> dict[str, bool]:
    """Return what has to hold."""
    of_case = {case_of(one): one for one in models}
    seconds: dict[tuple[Case, float], dict[str, float]] = {}
    for one in rows:
        seconds.setdefault((case_of(one), one["factor"]), {})[one["way"]] = one["seconds"]
    # A kernel that uses more than the card has is stalled in every way; what is fetched for its
    # last part drives out the first.
    fits = [
        case
        for *case, factor in slower_than([ON_DEMAND], rows)
        if of_case[tuple(case)]["most_used_bytes"] <= of_case[tuple(case)]["peak_bytes"] / factor
    ]
    every = itertools.product(itertools.product(torch_models.NAMES, DTYPES), FACTORS)
    ways = {IDEAL, *(way.name for way in WAYS)}
    return {
        "known order is never slower than on-demand where every kernel fits on the card": not fits,
        "nothing is faster than the ideal": all(
            taken.get(IDEAL, math.inf) <= min(taken.values()) for taken in seconds.values()
        ),
        "every row is there": all(seconds.get(card, {}).keys() == ways for card in every),
    }


def asked(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments; end the program where they cannot be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parser.add_argument("--models", nargs="+", choices=torch_models.NAMES)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    options = parser.parse_args(words)
    options.models = options.models or torch_models.NAMES
    if {*options.models} < {*torch_models.NAMES} or {*options.dtypes} < {*DTYPES}:
        # The result and the document have all.
        if options.json.resolve() == RESULT.resolve():
            parser.error(f"a part of the models or types needs --json, and not {RESULT.name}")
        if options.write:
            parser.error(f"a part of the models or types cannot be written to {DOCUMENT.name}")
    return options


def main(words: Sequence[str] | None = None) -> int:
    """Run everything; return 1 if a verdict is missed."""
    options = asked(words)
    cases = list(itertools.product(options.models, options.dtypes))
    processes = multiprocessing.get_context("spawn")
    with processes.Pool(min(2, os.cpu_count() or 1)) as pool:
        parts = []
        for case, part in zip(cases, pool.imap(_rows_of_case, cases), strict=True):
            print(*case, flush=True)
            parts.append(part)
    rows = [one for _, of_model in parts for one in of_model]
    models = [facts for facts, _ in parts]
    roofline = Roofline.of(load_machine(MACHINE))
    result = {
        **{"machine": MACHINE, "margin_bytes": MARGIN_BYTES, "iterations": ITERATIONS},
        "counted": COUNTED + 1,
        "roofline": vars(roofline),
        "models": models,
        "rows": rows,
        "slower_than_on_demand": slower_than([ON_DEMAND], rows),
        "slower_than_a_baseline": slower_than(BASELINES, rows),
        "verdicts": verdicts(rows, models),
    }
    write_json(options.json, "torch_policies", result)
    if options.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), result))
    return exit_status(result["verdicts"])


def _rows_of_case(case: Case) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    name, dtype = case
    program = record(name, dtype=dtype)
    rows = [row(case, program, factor, way) for factor in FACTORS for way in (*WAYS, None)]
    return model_facts(case, program), rows


if __name__ == "__main__":
    raise SystemExit(main())

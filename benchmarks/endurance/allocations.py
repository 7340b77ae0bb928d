# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A hundred million allocations in one process: whether anything grows, slows down, or is lost.

    python benchmarks/endurance/allocations.py [--allocations N | --small] [--json FILE] [--write]

One pool, made by `rmm_uvm.reinitialize` with a budget and its monitor, serves the mix of
`mix.py` on a simulated device with backing: pages move by the kernel driver's rules, and
contents are real. A hundred samples over the run say what the process holds, how the pool's free
memory lies, and what moved. Needs no GPU; 20 minutes. `--small` takes seconds, and is the test of
the script. `--write` writes the figures of the result file into docs/measure/endurance.md.

Figures of time and of traffic differ from run to run: threads of the package run beside.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")

import numpy as np

import rmm_uvm
from rmm_uvm._lib.limits import process_account

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.free_extents import Slabs
from benchmarks.common.process_levels import process_levels
from benchmarks.endurance.document import DOCUMENT, RESULT, document_with
from benchmarks.endurance.mix import CHURN_STEPS, EXCURSION_STEPS, MIB, Mix
from benchmarks.endurance.verdicts import verdicts_of

ALLOCATIONS = 100_000_000
SMALL_ALLOCATIONS, SMALL_CHURN_STEPS = 120_000, 9_800
DEVICE_BYTES, BUDGET_BYTES = 1024 * MIB, 256 * MIB
SLAB_BYTES, MOST_POOL_BYTES = 384 * MIB, 1024 * MIB
SAMPLES = 100
# A minute of the monitor's samples: its ring is full before anything is judged.
HISTORY = 600


class Series:
    """Rows of numbers whose memory is taken at once, so that they add nothing while they come in.

    Parameters
    ----------
    most_rows : int
        How many there may be.
    """

    def __init__(self, most_rows: int) -> None:
        self._names: tuple[str, ...] = ()
        self._most_rows, self._count = most_rows, 0
        self._values = np.empty((0, 0))

    def append(self, row: dict[str, float]) -> None:
        """Add a row; all have the same names."""
        if not self._names:
            self._names = tuple(row)
            self._values = np.full((self._most_rows, len(row)), -1.0)
        self._values[self._count] = [row[name] for name in self._names]
        self._count += 1

    def rows(self) -> list[dict[str, float]]:
        """Return them; whole numbers as such."""
        return [
            {
                name: int(value) if value == int(value) else round(float(value), 4)
                for name, value in zip(self._names, values, strict=True)
            }
            for values in self._values[: self._count].tolist()
        ]


class Sampler:
    """Takes a row of figures of a mix, its pool, its device and this process.

    Parameters
    ----------
    mr : UvmResourceAdaptor
        The pool.
    mix : Mix
        What runs on it.
    """

    def __init__(self, mr: Any, mix: Mix) -> None:
        self._mr, self._mix = mr, mix
        self._slabs = Slabs(mr)
        self._before = self._totals()
        self.row()

    def look(self) -> None:
        """Find slabs that are new, while something is alive in them."""
        self._slabs.look(self._mix.live())

    def row(self) -> dict[str, float]:
        """Return levels now, and what was counted since the last row."""
        extents = self._slabs.extents(self._mix.live())
        self._slabs.make_resident()
        totals = self._totals()
        counted = {name: total - self._before[name] for name, total in totals.items()}
        self._before = totals
        kept = rmm_uvm.residency_statistics(self._mr)
        row = {
            "allocations": self._mix.allocations,
            "ns_an_allocation": round(
                counted.pop("processor_ns") / max(counted["new_allocations"], 1), 1
            ),
            **counted,
            "live_bytes": self._mr.get_allocated_bytes(),
            "peak_live_bytes": self._mr.peak_bytes,
            "slab_bytes": self._mr.managed_mr.slab_bytes,
            "resident_bytes": kept.resident_bytes,
            **asdict(extents),
            "fragmentation_fraction": extents.fragmentation_fraction,
            **asdict(process_levels(besides_bytes=self._mr.managed_mr.slab_bytes)),
        }
        self._mr.reset_peak()
        return row

    def _totals(self) -> dict[str, float]:
        to_device_bytes, to_host_bytes = self._mr.driver.migrated_bytes()
        kept = rmm_uvm.residency_statistics(self._mr)
        return {
            "processor_ns": time.process_time_ns(),
            "new_allocations": self._mix.allocations,
            "to_device_bytes": to_device_bytes,
            "to_host_bytes": to_host_bytes,
            "dropped_bytes": kept.dropped_bytes,
            "renewed_bytes": kept.renewed_bytes,
            "failed_calls": kept.failed_calls,
            "checks": self._mix.checks,
            "wrong": self._mix.wrong,
        }


def endure(
    allocations: int,
    *,
    churn_steps: int = CHURN_STEPS,
    before_sample: Callable[[Any], None] = lambda _: None,
) -> dict[str, Any]:
    """Run the mix; return a row for each part of it, and what is left at the end.

    Parameters
    ----------
    allocations : int
        At least so many.
    churn_steps : int
        Between two excursions.
    before_sample : callable
        Called with the pool before each sample; tests leave something behind in it.
    """
    # At least an excursion and the churn after it in every part.
    samples = min(SAMPLES, max(allocations // (churn_steps + EXCURSION_STEPS), 1))
    device = rmm_uvm.simulated_device(DEVICE_BYTES, backing=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # findings: it is past the edge on purpose
        installation = rmm_uvm.reinitialize(
            SLAB_BYTES,
            MOST_POOL_BYTES,
            driver=device,
            device_budget=BUDGET_BYTES,
            monitor={"history": HISTORY},
            libraries=(),
        )
        mr = installation.managed_mr
        series = Series(samples)
        mix = Mix(mr)
        sampler = Sampler(mr, mix)
        for number in range(1, samples + 1):
            while mix.allocations < allocations * number // samples:
                mix.excursion()
                sampler.look()
                mix.churn(churn_steps)
            before_sample(mr)
            series.append(sampler.row())
        mix.free_all()
        end = {"allocated_bytes": mr.get_allocated_bytes(), "wrong": mix.wrong}
        rmm_uvm.restore()
        del mr, mix, sampler, installation
        gc.collect()
    levels = device.statistics()
    return {
        "rows": series.rows(),
        "end": {
            **end,
            "managed_bytes": levels["managed_bytes"],
            "resident_bytes": levels["resident_bytes"],
            "accounted_bytes": process_account().used_bytes,
        },
    }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--allocations", type=int, default=ALLOCATIONS, metavar="N")
    parser.add_argument("--small", action="store_true", help=f"{SMALL_ALLOCATIONS} allocations")
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args(words)
    asked = SMALL_ALLOCATIONS if options.small else options.allocations
    begun = time.monotonic()
    found = endure(asked, churn_steps=SMALL_CHURN_STEPS if options.small else CHURN_STEPS)
    verdicts = verdicts_of(found["rows"], found["end"], asked)
    result = {
        "settings": {
            "device_bytes": DEVICE_BYTES,
            "budget_bytes": BUDGET_BYTES,
            "allocations": asked,
        },
        "seconds": round(time.monotonic() - begun, 1),
        **found,
        "verdicts": verdicts,
    }
    harness.write_json(options.json, "endurance", result)
    if options.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), result))
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())

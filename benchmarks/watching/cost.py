# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What watching costs a program: one that only faults, and a cuDF pass on resident data.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/watching/cost.py --json FILE

One process, interleaved. "none" has no tracker of any kind open. The cuDF pass runs on RMM's own
managed pool, and "none" is run twice a round: how far the two are apart is the noise.
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
from rmm_uvm.drivers import CudaDriver, cuda_driver
from rmm_uvm.mr import ManagedMemoryResource

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.chains import make_chain
from benchmarks.watching.faults import stream_over

FAULT_BYTES = 2 << 30
PASSES = 20  # a third of a second: several samples are taken in it
WATCHING: dict[str, dict[str, Any] | None] = {
    "none": None,
    "watched": {},
    "watched with faults": {"faults": True},
}
ATTRIBUTION = {"none": None, "watched with attribution": {"attribution": True}}


def watched(keywords: dict[str, Any] | None, run: Callable[[], float], times: int) -> float:
    """Run under a monitor made for it, or under none; return the seconds of one run.

    The first run, in which the monitor starts and caches fill again, is left out for all alike.
    """
    if keywords is None:
        run()
        return sum(run() for _ in range(times)) / times
    # As reinitialize starts it: published, and warning.
    with rmm_uvm.monitor(driver=cuda_driver(0), **keywords):
        run()
        return sum(run() for _ in range(times)) / times


def fault_seconds(rounds: int, attributed_rounds: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Time the faulting kernel, its data brought back to the host before each run."""
    plain = CudaDriver(0, counters=False)
    mr = ManagedMemoryResource(plain, prefetch="never")
    address = mr.allocate(FAULT_BYTES)

    def run() -> float:
        plain.prefetch(address, FAULT_BYTES, "host")
        plain.synchronize()
        return stream_over(address, FAULT_BYTES)

    def runs(which: dict[str, Any]) -> dict[str, Callable[[], float]]:
        return {name: (lambda k=k: watched(k, run, 1)) for name, k in which.items()}

    stream_over(address, FAULT_BYTES)
    always = harness.interleaved(runs(WATCHING), rounds)
    attributed = harness.interleaved(runs(ATTRIBUTION), attributed_rounds, warm_ups=1)
    mr.deallocate(address, FAULT_BYTES)
    stop_seconds = seconds_to_stop()
    return {"always": always, "attributed": attributed}, {"stop attribution": stop_seconds}


def seconds_to_stop() -> float:
    """Return how long it takes to switch attribution off."""
    monitor = rmm_uvm.monitor(driver=cuda_driver(0), attribution=True, on_finding=None)
    monitor.start()
    begin = time.perf_counter()
    monitor.stop()
    return time.perf_counter() - begin


def resident_seconds(rows: int, rounds: int) -> dict[str, list[float]]:
    """Time a cuDF pass on data that stay on the device."""
    from benchmarks.pool.cudf_pass import Pass

    plain = CudaDriver(0, counters=False)
    one_pass = Pass(make_chain("rmm-managed", 7 << 30, plain), rows)
    runs = {
        name: (lambda k=keywords: watched(k, one_pass, PASSES))
        for name, keywords in {"none": None, "watched": {}, "none again": None}.items()
    }
    seconds = harness.interleaved(runs, rounds)
    rmm.mr.set_current_device_resource(rmm.mr.CudaMemoryResource())
    return seconds


def noise_fraction(seconds: dict[str, list[float]]) -> float:
    """Return how far the median of pairs of equal runs may lie from 1 by chance.

    The notch of a box plot, 1.57 times the interquartile range over the root of the count: about a
    95 % interval of a median (McGill, Tukey, Larsen, The American Statistician 32, 1978).
    """
    pairs = [a / b for a, b in zip(seconds["none again"], seconds["none"], strict=True)]
    low, _, high = statistics.quantiles(pairs, n=4)
    notch = 1.57 * (high - low) / len(pairs) ** 0.5
    return max(notch, abs(statistics.median(pairs) - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--attributed-rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--pass-rounds", type=int, default=41)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    harness.require_managed_limit(CudaDriver(0, counters=False).memory()[0])
    faults, other = fault_seconds(arguments.rounds, arguments.attributed_rounds)
    resident = resident_seconds(arguments.rows, arguments.pass_rounds)
    noise = noise_fraction(resident)
    verdicts = {
        "fault-bound kernel, watched / none": harness.judged(
            harness.ratio(faults["always"], "watched", "none"), 1.06
        ),
        "fault-bound kernel, with faults / none": round(
            harness.ratio(faults["always"], "watched with faults", "none"), 4
        ),
        "fault-bound kernel, with attribution / none": round(
            harness.ratio(faults["attributed"], "watched with attribution", "none"), 4
        ),
        "seconds to stop attribution": round(other["stop attribution"], 3),
        "resident cuDF pass, watched / none": harness.judged(
            harness.ratio(resident, "watched", "none"), round(1 + noise, 4)
        ),
        "resident cuDF pass, none again / none": round(
            harness.ratio(resident, "none again", "none"), 4
        ),
    }
    results = {
        "fault_bytes": FAULT_BYTES,
        "rows": arguments.rows,
        "fault_seconds": faults,
        "fault_medians": {name: harness.medians(runs) for name, runs in faults.items()},
        "resident_seconds": resident,
        "resident_medians": harness.medians(resident),
        "resident_noise_fraction": noise,
        "verdicts": verdicts,
    }
    harness.write_json(arguments.json, "watching_cost", results)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The sampler: processor time at ten samples a second, memory of a day at one a second.

    python benchmarks/watching/sampler_cost.py [--seconds N] [--driver simulated:256MiB] --json FILE

Watches one device whose memory thrashes all the time, with the levels of a pool. Processor time is
that of the sampler's own thread, over the time that passed; the memory of a ring of 86,400 samples
is what the process' resident memory grows by while the ring fills. Needs no GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import rmm_uvm
from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.monitor import Sampler, Slot, levels_of
from rmm_uvm.drivers import choose_driver
from rmm_uvm.recording.sample import SAMPLE_DTYPE

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

INTERVAL_NS = 100_000_000
DAY_SAMPLES = 86_400
MOST_CORE_FRACTION = 0.01
MOST_RING_BYTES = 10 << 20
PIECE_BYTES = 2 << 20


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise SystemExit("/proc/self/status does not tell VmRSS")


def processor_cost(driver: UvmDriver, seconds: float) -> dict[str, float]:
    """Sample a device at work for `seconds`; return what that took."""
    pool_bytes = min(driver.info.total_bytes // 4 * 3, 4 << 30)
    mr = rmm_uvm.managed_pool(driver=driver, initial_pool_size=pool_bytes)
    sampler = Sampler([Slot(driver.info.device_id, driver)], INTERVAL_NS)
    sampler.set_levels(driver.info.device_id, levels_of(mr))
    address = mr.allocate(pool_bytes // 2)
    sampler.start()
    begin = time.perf_counter()
    rounds = 0
    while (passed := time.perf_counter() - begin) < seconds:
        driver.prefetch(address, PIECE_BYTES, ("host", "device")[rounds % 2])
        driver.synchronize()
        rounds += 1
        time.sleep(0.001)
    cost_seconds = sampler.cost_seconds
    sampler.stop()
    mr.deallocate(address, pool_bytes // 2)
    samples = sampler.next_sequence
    return {
        "seconds": round(passed, 3),
        "samples": samples,
        "samples_asked": int(seconds * 1e9 / INTERVAL_NS) + 1,
        "thread_seconds": round(cost_seconds, 6),
        "microseconds_a_sample": round(cost_seconds / max(samples, 1) * 1e6, 2),
        "core_fraction": round(cost_seconds / passed, 6),
    }


def ring_memory(driver: UvmDriver) -> dict[str, int]:
    """Fill a ring for a day at one sample a second; return what that took."""
    before = resident_bytes()
    sampler = Sampler([Slot(driver.info.device_id, driver)], INTERVAL_NS, DAY_SAMPLES)
    for _ in range(DAY_SAMPLES + 100):
        sampler.sample_now()
    return {
        "samples": DAY_SAMPLES,
        "sample_bytes": SAMPLE_DTYPE.itemsize,
        "ring_bytes": DAY_SAMPLES * SAMPLE_DTYPE.itemsize,
        "resident_growth_bytes": resident_bytes() - before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--driver", default="simulated:256MiB")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    os.environ["RMM_UVM_DRIVER"] = options.driver  # also what the result file describes
    driver = choose_driver()
    memory = ring_memory(driver)
    processor = processor_cost(driver, options.seconds)
    harness.write_json(
        options.json,
        "sampler_cost",
        {
            "driver": options.driver,
            "processor": processor,
            "memory": memory,
            "verdicts": {
                "core_fraction_at_10_hz": harness.judged(
                    processor["core_fraction"], MOST_CORE_FRACTION
                ),
                "ring_of_a_day_over_10_mib": harness.judged(
                    memory["resident_growth_bytes"] / MOST_RING_BYTES, 1.0
                ),
            },
        },
    )


if __name__ == "__main__":
    main()

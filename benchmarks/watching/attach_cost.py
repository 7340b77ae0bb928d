# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Attaching to a program that is not ours: exactness, cost, and letting go.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/watching/attach_cost.py --json FILE

The program (``foreign_program.py``) is another process and knows nothing of this package. Rounds
with and without an attached tracker alternate. Needs root or CAP_SYS_PTRACE.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rmm_uvm._lib.cuda import Nvml, ProcessCounters
from rmm_uvm.drivers import CudaDriver

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

PROGRAM = Path(__file__).with_name("foreign_program.py")


class Foreign:
    """The other process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.nbytes = int(self.process.stdout.readline())

    def round(self) -> float:
        """Run one round; return the kernel's seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def exactness(foreign: Foreign, rounds: int) -> dict[str, Any]:
    """Compare what was counted with what the program is known to have moved."""
    rows = []
    with ProcessCounters(foreign.process.pid) as counters:
        for _ in range(rounds):
            before = counters.read()
            foreign.round()
            after = counters.read()
            rows.append(
                {
                    name: after[name] - before[name]
                    for name in ("host_to_device_bytes", "device_to_host_bytes")
                }
            )
    equal = all(set(row.values()) == {foreign.nbytes} for row in rows)
    return {"expected_bytes": foreign.nbytes, "counted": rows, "equal_to_the_byte": equal}


def attached_round(foreign: Foreign) -> float:
    with ProcessCounters(foreign.process.pid):
        return foreign.round()


def letting_go(foreign: Foreign, nvml: Nvml, uuid: str, before_bytes: int) -> dict[str, Any]:
    """End the program while it is watched; its device memory has to come back at once."""
    used_bytes = nvml.memory(uuid)[0]
    with ProcessCounters(foreign.process.pid) as counters:
        assert foreign.process.stdin is not None
        foreign.process.stdin.close()
        foreign.process.wait()
        begin = time.perf_counter()
        exited = counters.wait(1.0)
        released_seconds = time.perf_counter() - begin
        freed_seconds = None
        while time.perf_counter() - begin < 3.0:
            if nvml.memory(uuid)[0] <= before_bytes + (16 << 20):
                freed_seconds = time.perf_counter() - begin
                break
            time.sleep(0.01)
        totals = counters.read()
    return {
        "used_bytes_while_running": used_bytes,
        "used_bytes_before": before_bytes,
        "exit_seen": exited,
        "seconds_from_exit_to_release": released_seconds,
        "seconds_from_exit_to_memory_free": freed_seconds,
        "last_totals_readable": totals["host_to_device_bytes"] >= 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    driver = CudaDriver(0, counters=False)
    harness.require_managed_limit(driver.memory()[0])
    nvml, uuid = Nvml(), driver.info.uuid
    before_bytes = nvml.memory(uuid)[0]
    foreign = Foreign()
    try:
        counted = exactness(foreign, 5)
        seconds = harness.interleaved(
            {"alone": foreign.round, "attached": lambda: attached_round(foreign)}, arguments.rounds
        )
        released = letting_go(foreign, nvml, uuid, before_bytes)
    finally:
        foreign.process.kill()
    verdicts = {
        "foreign fault-bound kernel, attached / alone": harness.judged(
            harness.ratio(seconds, "attached", "alone"), 1.06
        ),
        "counted to the byte": counted["equal_to_the_byte"],
        "let go within a second of the exit": released["exit_seen"]
        and released["seconds_from_exit_to_release"] < 1.0,
        "device memory came back": released["seconds_from_exit_to_memory_free"],
    }
    results = {
        "seconds": seconds,
        "medians": harness.medians(seconds),
        "exactness": counted,
        "letting_go": released,
        "verdicts": verdicts,
    }
    harness.write_json(arguments.json, "attach_cost", results)


if __name__ == "__main__":
    main()

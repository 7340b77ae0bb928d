# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What harvesting costs a neighbour with work of its own, and how soon it has its memory back.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/neighbors/interference.py --json FILE
    python benchmarks/neighbors/interference.py --json FILE --simulated

A process on GPU 1 multiplies matrices, or reads, sorts and counts, while a program on GPU 0 goes
over data of twice its budget: alone, with memory leaving to the host, and to GPU 1, in turn. Then
an owner with a budget on GPU 1 offers it on a board, the program's data go there, and the owner
takes all of it at one moment: how fast it leaves, against the rate to the host in the same run.
Contents are checked at every use. No judge looks at how much lies beyond the budgets: the slowdown
is that of the traffic that there was, and what left is the budget's own count. Two GPUs with peer
access; two minutes. The file is written after each row. `--simulated` tests the script.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm._lib.limits import managed_limit_bytes
from rmm_uvm.residency import Budget

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.gpu_arrays import GpuArrays
from benchmarks.neighbors.claims import SPARE_BYTES, Owner, OwnerProcess
from benchmarks.neighbors.consolidation_programs import Harvester
from benchmarks.neighbors.consolidation_programs import Owner as SimulatedJob
from benchmarks.neighbors.owner import OwnerJob
from benchmarks.neighbors.pair import MIB, make_pair
from benchmarks.neighbors.paths import ours
from benchmarks.residency.programs import TRAINING_PEAK_MIB, training_loop

JOBS = ("matrix", "etl")
SLOWDOWN_BOUND, FREED_BOUND = 1.03, 0.8
SCALE = 12  # of the program: 2 GiB
ROUND_SECONDS = 0.5  # short, so that what else goes on is the same for all three
OWNER_BYTES, SIMULATED_OWNER_BYTES = 3 << 30, 128 * MIB
PART_BYTES, SIMULATED_PART_BYTES = 64 * MIB, 8 * MIB
LONGEST_SECONDS = 5.0
HOST_PIECE_BYTES, HOST_BYTES = 8 * MIB, 1 << 30  # as budgets evict where migrations are direct
WAYS: dict[str, Any] = {"host only": None, "neighbour first": [1]}


class Program:
    """A loop over arrays whose contents are checked, under a budget of half of them."""

    def __init__(self, driver: Any, neighbors: Any) -> None:
        peak_bytes = TRAINING_PEAK_MIB * MIB * SCALE
        self._mr = rmm_uvm.managed_pool(
            driver=driver,
            maximum_pool_size=2 * peak_bytes,
            device_budget=Budget(peak_bytes // 2, neighbors=neighbors, board=None),
        )
        self._arrays = GpuArrays(self._mr, passes=20)

    def run(self, seconds: float) -> None:
        """Go over the data for so long; end the benchmark where any are wrong."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            training_loop(self._arrays, SCALE, 4)
            if wrong := self._arrays.finish():
                raise SystemExit(f"{wrong} words were lost")

    def neighbor_bytes(self) -> int:
        """Return what left to the neighbour so far."""
        return int(self._mr.managed_mr.residency.residency()["neighbor_bytes"])


def interference(pair: Any, kind: str, rounds: int) -> dict[str, Any]:
    """Return the time of the neighbour's steps: alone, and beside each way."""
    seconds: dict[str, list[float]] = {"alone": [], **{way: [] for way in WAYS}}
    programs = {way: Program(pair.device, neighbors) for way, neighbors in WAYS.items()}
    with OwnerJob(kind) as job:
        runs: dict[str, Callable[[], object]] = {"alone": lambda: time.sleep(ROUND_SECONDS)}
        for way, program in programs.items():
            program.run(0)
            program.run(ROUND_SECONDS)
            runs[way] = lambda program=program: program.run(ROUND_SECONDS)
        for number in range(rounds):
            names = list(runs)
            for name in names[number % 3 :] + names[: number % 3]:
                seconds[name].append(job.step_seconds(runs[name]))
    row = {
        "job": kind,
        "step_seconds": {name: statistics.median(values) for name, values in seconds.items()},
        **{f"slowdown, {way}": harness.ratio(seconds, way, "alone") for way in WAYS},
        "neighbor_bytes": programs["neighbour first"].neighbor_bytes(),
    }
    programs.clear()
    gc.collect()
    return row


def simulated_interference(kind: str) -> dict[str, Any]:
    """Return the same of simulated programs, in modelled time."""
    found: dict[str, float] = {}
    neighbor_bytes = 0
    for way, neighbors in {"alone": None, **WAYS}.items():
        node = rmm_uvm.simulated_node(2, "256MiB")
        job = SimulatedJob(node.devices[1], 0.6)
        job.begin()  # it runs already, and has what it needs
        if way == "alone":
            job.begin()
            job.step()
            found[way] = job.step_seconds()
            continue
        budget = {"neighbors": neighbors, "board": None}
        program = Harvester(node.devices[0], "training", 384 * MIB, budget)
        for begun in (program.begin(), program.steps(3)):
            job.begin()
            for _ in begun:
                while job.now_ns < program.now_ns:
                    job.step()
        found[way] = job.step_seconds()
        neighbor_bytes = (program.prefetcher.residency() or {}).get("neighbor_bytes", 0)
    return {
        "job": kind,
        "step_seconds": found,
        **{f"slowdown, {way}": found[way] / found["alone"] for way in WAYS},
        "neighbor_bytes": neighbor_bytes,
    }


class SimulatedArrays:
    """Memory of a simulated device: announced and touched, without contents."""

    def __init__(self, mr: Any, device: Any) -> None:
        self._mr, self._device = mr, device

    def make(self, nbytes: int) -> int:
        """Allocate and write."""
        address = int(self._mr.allocate(nbytes))
        self._device.touch(address, nbytes, write=True)
        self._sizes = {**getattr(self, "_sizes", {}), address: nbytes}
        return address

    def read(self, address: int) -> None:
        """Announce, then read all of it."""
        self._mr.managed_mr.residency.touch(address, self._sizes[address], address)
        self._device.touch(address, self._sizes[address])

    def free(self, address: int) -> None:
        """Free."""
        self._mr.deallocate(address, self._sizes.pop(address))

    def finish(self) -> int:
        """Tell how many words were wrong: there are none."""
        return 0


class _OwnerThread:
    """An owner in a thread of this process, for a simulated node."""

    def __init__(self, owner: Owner) -> None:
        self._owner, self._found = owner, {}
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self._found = self._owner.take()

    def begin_to_take(self) -> None:
        self._thread.start()

    def answer(self) -> Any:
        self._thread.join()
        return self._found


def reclaim(
    pair: Any, folder: str, owner: Any, owner_bytes: int, part_bytes: int
) -> dict[str, Any]:
    """Fill what the owner offers, have it taken back; return times and bytes."""
    parts = 2 * owner_bytes // part_bytes
    budget_bytes = owner_bytes
    mr = rmm_uvm.managed_pool(
        driver=pair.device,
        initial_pool_size=(parts + 2) * part_bytes,
        maximum_pool_size=(parts + 2) * part_bytes,
        device_budget=Budget(budget_bytes, neighbors=[1], board=folder),
    )
    arrays: Any = SimulatedArrays(mr, pair.device) if pair.simulated else GpuArrays(mr)
    prefetcher = mr.managed_mr.residency
    held = [arrays.make(part_bytes) for _ in range(parts)]
    arrays.finish()
    prefetcher.flush()

    def left() -> int:
        return int(prefetcher.residency()["harvested_bytes"])

    before = left()
    owner.begin_to_take()
    deadline = time.monotonic() + LONGEST_SECONDS
    while left() > SPARE_BYTES and time.monotonic() < deadline:
        time.sleep(0.0002)
    freed = time.monotonic()
    taken = owner.answer()
    remaining = left()
    for address in held:
        arrays.read(address)
    wrong = arrays.finish()
    kept = prefetcher.residency()
    for address in held:
        arrays.free(address)
    times = {name: taken[name] - taken["begin"] for name in ("answered", "written")}
    return {
        "harvested_bytes": before,
        "left_bytes": before - remaining,
        "freed_seconds": freed - taken["begin"],
        "freed_bytes_per_second": (before - remaining) / (freed - taken["begin"]),
        "owner_seconds": times,
        **{name: taken[name] for name in ("reclaims", "reclaim_wait_seconds")},
        "given_back_bytes": kept["given_back_bytes"],
        "given_back_at_once_bytes": kept["given_back_at_once_bytes"],
        "failed_calls": kept["failed_calls"],
        "wrong_words": wrong,
    }


def reclaims(pair: Any) -> dict[str, Any]:
    """Return a reclaim, and the rate to the host of the same run."""
    with tempfile.TemporaryDirectory() as folder:
        if pair.simulated:
            owner = _OwnerThread(Owner(pair.neighbor, folder, SIMULATED_OWNER_BYTES))
            found = reclaim(pair, folder, owner, SIMULATED_OWNER_BYTES, SIMULATED_PART_BYTES)
            return {**found, "host_bytes_per_second": None}
        rate = ours(pair, HOST_BYTES, HOST_PIECE_BYTES, "host", 5)["evict_bytes_per_second"]
        with OwnerProcess(folder, OWNER_BYTES) as process:
            found = reclaim(pair, folder, process, OWNER_BYTES, PART_BYTES)
        return {**found, "host_bytes_per_second": rate}


def verdicts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Judge what is there so far."""
    found: dict[str, Any] = {}
    for row in result["interference"]:
        found[f"slowdown of {row['job']}"] = harness.judged(
            row["slowdown, neighbour first"], SLOWDOWN_BOUND
        )
        found[f"memory went to the neighbour beside {row['job']}"] = row["neighbor_bytes"] > 0
    if row := result.get("reclaim"):
        stays = row["harvested_bytes"] - row["left_bytes"]
        found["all that was taken back has left"] = row["left_bytes"] > 0 and stays <= SPARE_BYTES
        found["contents are as they were"] = row["wrong_words"] == 0 == row["failed_calls"]
        if row["host_bytes_per_second"]:
            found["freed, of the rate to the host"] = harness.judged_at_least(
                row["freed_bytes_per_second"] / row["host_bytes_per_second"], FREED_BOUND
            )
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Measure; return 1 if a verdict is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--simulated", action="store_true", help="test the script without GPUs")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args(words)
    if not arguments.simulated:
        # The pools of a reclaim are twice the owner's and a little, and its own.
        harness.require_managed_on_gpus(2, {"programs": 8 << 30, "owner": OWNER_BYTES})
        # The owner's process has its part of the cap, this one the rest.
        os.environ["RMM_UVM_MANAGED_LIMIT"] = str((managed_limit_bytes() or 0) - OWNER_BYTES)
    pair = make_pair(simulated=arguments.simulated)
    result: dict[str, Any] = {"simulated_pair": pair.simulated, "interference": []}

    def keep() -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # verdicts of a part are none
            whole = {**result, "verdicts": verdicts(result)}
            harness.write_json(arguments.json, "neighbors_interference", whole)

    for kind in JOBS:
        row = (
            simulated_interference(kind)
            if pair.simulated
            else interference(pair, kind, arguments.rounds)
        )
        result["interference"].append(row)
        print(json.dumps(row), flush=True)
        keep()
    result["reclaim"] = reclaims(pair)
    print(json.dumps(result["reclaim"], indent=1), flush=True)
    keep()
    found = verdicts(result)
    print(json.dumps(found, indent=1))
    return harness.exit_status(found)


if __name__ == "__main__":
    raise SystemExit(main())

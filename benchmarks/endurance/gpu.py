# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Eight minutes of mixed load on a GPU under budgets, with contents that are looked at.

    RMM_UVM_MANAGED_LIMIT=12GiB python benchmarks/endurance/gpu.py [--seconds 480] --json FILE
    python benchmarks/endurance/gpu.py --simulated [--operations N] --json FILE
    python benchmarks/endurance/gpu.py --write    # the table of docs/measure/endurance.md, of what
    is kept

Four threads, each with a stream of its own, allocate, use, change, prefetch, evict, pin, advise and
free buffers of 256 bytes to 128 MiB, at up to 2.4 times a budget; beside them cuDF, where it is
installed, groups, merges and sorts. Every use looks at all of a buffer, in kernels. After some
seconds the next pool is installed with another budget while buffers of the one before are alive;
after three pools everything is freed and restored, and a sample taken. All managed memory, of two
pools at a time, is at most 12 GiB and under the cap.

`--simulated` runs the same operations on a simulated device, and a number of them in place of
seconds: the test of the script.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm._lib.limits import process_account
from rmm_uvm.residency import POLICIES, Budget

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.process_levels import process_levels
from benchmarks.endurance.load import Worker
from benchmarks.endurance.load_contents import Contents, GpuContents, SimulatedContents
from benchmarks.endurance.load_document import DOCUMENT, RESULT, document_with
from benchmarks.endurance.load_frames import frames_available, frames_wrong
from benchmarks.endurance.load_verdicts import load_verdicts

GIB = 1 << 30
MOST_MANAGED_BYTES = 12 * GIB
POOLS_AT_ONCE = 2
THREADS = 4
ROUNDS_A_SAMPLE = 3
LARGEST_BYTES = 128 << 20  # of a buffer: what threads pin together is less than any budget
SIMULATED_DEVICE_BYTES, SIMULATED_POOL_BYTES = 512 << 20, 128 << 20
SIMULATED_LARGEST_BYTES = 8 << 20
THREADS_FRACTION = 0.6  # of a pool, what threads hold; the rest is for frames and fragmentation
BUDGET_FRACTIONS = (1 / 4, 1 / 3, 1 / 2)
BYTES_A_ROW = 800  # of a pool for each row of a frame: its merge and sort take a tenth of that
HISTORY = 600  # samples of the monitor


@dataclass(frozen=True)
class Load:
    """What the load runs on.

    Parameters
    ----------
    driver : UvmDriver
        Of the device.
    make_contents : callable
        Makes what a thread computes with.
    pool_bytes, largest_bytes : int
        Of one pool, and of a buffer, at most.
    libraries : tuple of str
        Which libraries allocate from it too.
    frames : callable or None
        Computes with frames of so many rows and returns what was wrong; None where there are none.
    """

    driver: Any
    make_contents: Callable[[], Contents]
    pool_bytes: int
    largest_bytes: int = LARGEST_BYTES
    libraries: tuple[str, ...] = ()
    frames: Callable[[int, int], int] | None = None

    @classmethod
    def simulated(cls) -> Load:
        """Return one without a GPU."""
        driver = rmm_uvm.simulated_device(SIMULATED_DEVICE_BYTES, backing=True)
        sizes_bytes = SIMULATED_POOL_BYTES, SIMULATED_LARGEST_BYTES
        return cls(driver, lambda: SimulatedContents(driver), *sizes_bytes)

    @classmethod
    def on_gpu(cls) -> Load:
        """Return one on the first GPU; end the program where that is not safe."""
        driver = rmm_uvm.cuda_driver(0)
        limit_bytes = harness.require_managed_limit(driver.memory()[0])
        pool_bytes = min(limit_bytes, MOST_MANAGED_BYTES) // POOLS_AT_ONCE
        frames = frames_wrong if frames_available() else None
        return cls(driver, GpuContents, pool_bytes, libraries=("cupy",), frames=frames)


@dataclass
class Run:
    """The threads and what was counted, from one pool to the next."""

    load: Load
    rounds: int = 0
    frame_passes: int = 0
    frames_refused: int = 0
    frames_wrong: int = 0
    dropped_bytes: int = 0
    failed_calls: int = 0
    rows: list[dict[str, float]] = field(default_factory=list)
    _workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        live_bytes = int(self.load.pool_bytes * THREADS_FRACTION / THREADS)
        self._workers = [
            Worker(number, self.load.make_contents(), live_bytes, self.load.largest_bytes)
            for number in range(THREADS)
        ]

    def round(self, ended: Callable[[int], bool]) -> None:
        """Install another pool and run the threads on it, buffers of the last being alive."""
        pool_bytes = self.load.pool_bytes
        budget = Budget(
            int(pool_bytes * BUDGET_FRACTIONS[self.rounds % len(BUDGET_FRACTIONS)]),
            policy=tuple(POLICIES)[self.rounds % len(POLICIES)],
            ahead=bool(self.rounds % 2),
        )
        installation = rmm_uvm.reinitialize(
            budget.budget_bytes,
            pool_bytes,
            driver=self.load.driver,
            device_budget=budget,
            monitor={"history": HISTORY},
            libraries=self.load.libraries,
        )
        mr = installation.managed_mr
        with ThreadPoolExecutor(THREADS) as executor:
            running = [executor.submit(worker.run, mr, ended) for worker in self._workers]
            while self.load.frames is not None and not all(one.done() for one in running):
                self._pass_frames(self.load.frames)
            for one in running:
                one.result()
        for worker in self._workers:
            worker.free_all(but_of=mr)
        kept = rmm_uvm.residency_statistics(mr)
        self.dropped_bytes += kept.dropped_bytes
        self.failed_calls += kept.failed_calls
        self.rounds += 1

    def _pass_frames(self, frames: Callable[[int, int], int]) -> None:
        try:
            self.frames_wrong += frames(self.load.pool_bytes // BYTES_A_ROW, self.frame_passes)
            self.frame_passes += 1
        except MemoryError:  # as in the threads: no room is no fault
            self.frames_refused += 1

    def give_back(self) -> None:
        """Free everything, restore what was installed before, and take a sample."""
        for worker in self._workers:
            worker.free_all()
        wrong = sum(worker.finish() for worker in self._workers)
        rmm_uvm.restore()
        gc.collect()
        to_device_bytes, to_host_bytes = self.load.driver.migrated_bytes()
        self.rows.append(
            {
                **{
                    name: getattr(self, name)
                    for name in (
                        *("rounds", "frame_passes", "frames_refused", "frames_wrong"),
                        *("dropped_bytes", "failed_calls"),
                    )
                },
                **{
                    name: sum(getattr(worker, name) for worker in self._workers)
                    for name in ("operations", "checks", "refused")
                },
                "wrong": wrong,
                "to_device_bytes": to_device_bytes,
                "to_host_bytes": to_host_bytes,
                "free_device_bytes": self.load.driver.memory()[0],
                "accounted_bytes": process_account().used_bytes,
                **asdict(process_levels()),
            }
        )
        # A run that is ended early, by whomever, has told what it found.
        print(json.dumps(self.rows[-1]), flush=True)


def endure(
    load: Load, rounds: Iterable[Callable[[int], bool]], rows: list[dict[str, float]]
) -> None:
    """Run a round for each of `rounds`, which say when it has ended; add the samples to `rows`."""
    run = Run(load, rows=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # findings: it is past the edge on purpose
        try:
            for ended in rounds:
                run.round(ended)
                if run.rounds % ROUNDS_A_SAMPLE == 0:
                    run.give_back()
        finally:
            rmm_uvm.restore()


def timed_rounds(seconds: float, round_seconds: float) -> Iterable[Callable[[int], bool]]:
    """Yield rounds until the time is over; the last sample's are all there."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end or number % ROUNDS_A_SAMPLE:
        round_end = time.monotonic() + round_seconds
        yield functools.partial(_is_over, round_end)
        number += 1


def _is_over(end: float, _: int) -> bool:
    return time.monotonic() >= end


def counted_rounds(operations: int, rounds: int) -> Iterable[Callable[[int], bool]]:
    """Yield rounds of so many operations of each thread."""
    for _ in range(rounds):
        yield lambda done: done >= operations


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--round-seconds", type=float, default=8.0)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--operations", type=int, default=200, help="of a simulated round")
    parser.add_argument("--rounds", type=int, default=12, help="of a simulated run")
    parser.add_argument("--json", type=Path, help="run, and write this file")
    parser.add_argument("--write", action="store_true", help=f"only write {DOCUMENT.name}")
    options = parser.parse_args(words)
    if (options.json is None) is not options.write:
        parser.error("give either --json FILE or --write")
    if options.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), json.loads(RESULT.read_text())))
        return 0
    begun = time.monotonic()
    if options.simulated:
        os.environ.setdefault("RMM_UVM_DRIVER", "simulated")  # what the result file describes
        load, rounds = Load.simulated(), counted_rounds(options.operations, options.rounds)
    else:
        load, rounds = Load.on_gpu(), timed_rounds(options.seconds, options.round_seconds)
    with_frames = load.frames is not None
    rows: list[dict[str, float]] = []
    verdicts: dict[str, Any] = {"the run came to its end": False}
    try:
        endure(load, rounds, rows)
        verdicts["the run came to its end"] = True
    except Exception:  # what was found before it is kept
        traceback.print_exc()
    if rows:
        verdicts |= load_verdicts(rows, with_frames=with_frames)
    result = {
        "settings": {
            "threads": THREADS,
            "seconds_asked": options.seconds,
            "frames": with_frames,
        },
        "run_seconds": round(time.monotonic() - begun, 1),
        "rows": rows,
        "verdicts": verdicts,
    }
    harness.write_json(options.json, "endurance_gpu", result)
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())

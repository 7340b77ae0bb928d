# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Where in the mortgage ETL kernels fault past a budget, and what left just before.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/residency/faults.py [--rows N] [--factor 1.5]
        [--policy repeat] [--iterations 3]

A thread looks every millisecond at what a budget counts and at what the program is doing: the line
of a step, and the function of cuDF in it. A device that lags behind the program shows a little
late. Prints a row for each place where anything faulted, with what was evicted and fetched there.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`


COUNTED = ("faulted_bytes", "evicted_bytes", "fetched_bytes", "dropped_bytes")
LOOK_SECONDS = 0.001
MIB = 1 << 20


def place_of(frame: FrameType | None) -> str:
    """Return the line of a step that a stack is in, and the innermost function of cuDF."""
    step = function = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if not function and "/cudf/" in name:
            function = frame.f_code.co_name
        if not step and "/mortgage/rmm_uvm_mortgage/steps/" in name:
            step = f"{frame.f_code.co_name}:{frame.f_lineno}"
        frame = frame.f_back
    return f"{step or 'elsewhere'} {function}".rstrip()


class Moments:
    """Enters what counters rise by under what goes on.

    Parameters
    ----------
    read : callable
        Returns the counters of `COUNTED`.
    place : callable
        Returns what goes on now.
    """

    def __init__(self, read: Callable[[], Mapping[str, Any]], place: Callable[[], str]) -> None:
        self._read, self._place = read, place
        self._before = dict(read())
        self.found: dict[tuple[int, str, bool], Counter[str]] = {}
        self.iteration = 0

    def look(self) -> None:
        """Enter what has risen since the last look."""
        place, now = self._place(), dict(self._read())
        here = self.found.setdefault((self.iteration, place, bool(now["foresees"])), Counter())
        for name in COUNTED:
            here[name] += (now[name] or 0) - (self._before[name] or 0)
        self._before = now

    def lines(self) -> list[str]:
        """Return a line for each place where anything faulted, in their order."""
        return [
            f"{iteration} {'believed' if foresees else 'as lru  '} {place:60} "
            + " ".join(f"{name.removesuffix('_bytes')} {here[name] / MIB:7.0f}" for name in COUNTED)
            for (iteration, place, foresees), here in self.found.items()
            if here["faulted_bytes"] > 0
        ]


def watched(moments: Moments, work: Callable[[], None]) -> None:
    """Do some work while a thread looks."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(LOOK_SECONDS):
            moments.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        work()
    finally:
        done.set()
        thread.join()
    moments.look()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--factor", type=float, default=1.5)
    parser.add_argument("--policy", default="repeat")
    parser.add_argument("--iterations", type=int, default=3)
    arguments = parser.parse_args()

    import rmm

    import rmm_uvm
    from benchmarks.common import harness
    from benchmarks.residency.mortgage import MOST_POOL_BYTES, Loop, make_engine, run_etl
    from rmm_uvm.integrations.seen.libcudf import observe
    from rmm_uvm.residency import Budget
    from rmm_uvm_mortgage.data_cache import generated_data
    from rmm_uvm_mortgage.generate import GeneratorConfig

    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    harness.keep_host_memory()
    loop = Loop(generated_data(GeneratorConfig(performance_rows=arguments.rows)), 3)
    peak_bytes = loop.run(None)["peak_bytes"]
    budget = Budget(int(peak_bytes / arguments.factor), arguments.policy)
    mr = loop.pool(budget, min(3 * peak_bytes, MOST_POOL_BYTES))
    rmm.mr.set_current_device_resource(mr)
    prefetcher = mr.managed_mr.residency
    end = observe([prefetcher])
    main_thread = threading.get_ident()
    moments = Moments(
        lambda: prefetcher.residency() or {},
        lambda: place_of(sys._current_frames().get(main_thread)),
    )
    engine = make_engine("cudf")

    def iterate() -> None:
        run_etl(engine, loop.part)
        engine.synchronize()

    for number in range(arguments.iterations):
        moments.iteration = number + 1
        watched(moments, iterate)
        print(f"after {number + 1}: {rmm_uvm.residency_statistics(mr)}", flush=True)
    end()
    print("\n".join(moments.lines()) or "nothing faulted")


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How many threads should move pieces past libcuda: rates alone, both ways, beside kernels.

`whole` memory is one mapping of the CPU, as cudaMallocManaged makes it; `cut` memory is what our
resource makes of it: mappings of 4 MiB. What goes to the host is mapped there under a lock of its
mapping.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/driver/migration_threads.py --json FILE

What bounds one thread is the driver's work on its processor. Each row moves 2 GiB in pieces, three
times, shared out among threads, over host pages that were used before; with ``beside_kernels``
while another thread has matrices multiplied, whose rate is compared with that of before.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rmm
import torch

import rmm_uvm

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

MIB = 1 << 20
BYTES = 2 << 30
PIECES_MIB = (2, 8, 32)
THREADS = (1, 2, 4, 8)
BOTH_WAYS = ((1, 1), (2, 2), (4, 2), (4, 4), (8, 2))
EVICTING, FETCHING = 8, 2  # as `cuda_driver` and `block_mover` have it, on 16 processors
REPEATS = 3

Jobs = list[tuple[int, int, int, str]]  # address, bytes, threads, and where to


class Kernels:
    """Multiplies matrices in a thread of its own, and counts."""

    def __init__(self) -> None:
        self.done = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        torch.zeros(1, device="cuda")  # the context becomes this thread's
        matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
        result, events = torch.empty_like(matrix), []
        while not self._stopped.is_set():
            for _ in range(8):
                torch.mm(matrix, matrix, out=result)
            events.append(torch.cuda.Event())
            events[-1].record()
            if len(events) > 6:
                events.pop(0).synchronize()
                self.done += 8
        torch.cuda.synchronize()

    def rate(self, seconds: float = 0.4) -> float:
        """Return multiplications a second, with nothing beside them."""
        time.sleep(0.3)
        before, begin = self.done, time.perf_counter()
        time.sleep(seconds)
        return (self.done - before) / (time.perf_counter() - begin)

    def stop(self) -> None:
        """End it."""
        self._stopped.set()
        self._thread.join()


@contextmanager
def kernels(*, wanted: bool) -> Iterator[Kernels | None]:
    """Have kernels run within the block, if they are wanted."""
    running = Kernels() if wanted else None
    try:
        yield running
    finally:
        if running is not None:
            running.stop()


def moved(driver: Any, jobs: Jobs, piece_bytes: int) -> float:
    """Move regions, each by some threads; return the seconds until all have arrived."""

    def run(pieces: list[int], where: str) -> None:
        for address in pieces:
            driver.migrate(address, piece_bytes, where)

    threads = [
        threading.Thread(target=run, args=(list(range(at, at + nbytes, piece_bytes))[i::n], where))
        for at, nbytes, n, where in jobs
        for i in range(n)
    ]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def rows_of(driver: Any, regions: list[int], mapping: str, *, beside: bool) -> list[dict[str, Any]]:
    """Return every row, with kernels running or not; the first region is on the device."""
    rows = []
    with kernels(wanted=beside) as running:
        alone = 0.0 if running is None else running.rate()

        def take(piece: int, out: int, into: int, jobs: Iterable[Jobs]) -> None:
            rates, ratios = [], []
            for each in jobs:
                before = 0 if running is None else running.done
                seconds = moved(driver, each, piece * MIB)
                rates.append(BYTES / seconds)
                if running is not None:
                    ratios.append(alone / max(1e-9, (running.done - before) / seconds))
            row: dict[str, Any] = {
                "mapping": mapping,
                "beside_kernels": beside,
                "piece_bytes": piece * MIB,
                "evicting_threads": out,
                "fetching_threads": into,
                "bytes_per_second_each_way": statistics.median(rates),
            }
            if ratios:
                row["kernel_time_ratio"] = statistics.median(ratios)
            rows.append(row)
            print(row, flush=True)

        def away_and_back(n: int, *, out: bool) -> Iterator[Jobs]:
            for _ in range(REPEATS):
                if not out:
                    moved(driver, [(regions[0], BYTES, n, "host")], 8 * MIB)
                yield [(regions[0], BYTES, n, "host" if out else "device")]
                if out:
                    moved(driver, [(regions[0], BYTES, n, "device")], 8 * MIB)

        def both(out: int, into: int) -> Iterator[Jobs]:
            for _ in range(REPEATS):
                yield [(regions[0], BYTES, out, "host"), (regions[1], BYTES, into, "device")]
                regions.reverse()

        for piece in PIECES_MIB:
            for n in THREADS:
                take(piece, n, 0, away_and_back(n, out=True))
                take(piece, 0, n, away_and_back(n, out=False))
        for out, into in BOTH_WAYS:
            take(8, out, into, both(out, into))
    return rows


def verdicts_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge that the threads which the manager has are faster than one, each way and both."""
    at = {
        (row["mapping"], row["evicting_threads"], row["fetching_threads"], row["beside_kernels"]): (
            row["bytes_per_second_each_way"]
        )
        for row in rows
        if row["piece_bytes"] == 8 * MIB
    }

    def gain(many: tuple[str, int, int], one: tuple[str, int, int]) -> float:
        return statistics.geometric_mean(at[*many, k] / at[*one, k] for k in (False, True))

    out, into, both = (EVICTING, 0), (0, FETCHING), (EVICTING, FETCHING)
    return {
        name: harness.judged_at_least(gain(many, one), least)
        for name, many, one, least in (
            ("evicting, against one thread", ("cut", *out), ("cut", 1, 0), 3.0),
            ("fetching, against one thread", ("cut", *into), ("cut", 0, 1), 1.1),
            ("both ways, against one thread", ("cut", *both), ("cut", 1, 1), 1.2),
            ("evicting, against whole mappings", ("cut", *out), ("whole", *out), 2.0),
            ("fetching, against whole mappings", ("cut", *into), ("whole", *into), 0.95),
        )
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    driver = rmm_uvm.cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    if not driver.info.direct_migration:
        raise SystemExit(f"nothing to measure: {driver.info.direct_migration.reason}")
    torch.cuda.init()
    rows = []
    for mapping, mr in (
        ("whole", rmm.mr.ManagedMemoryResource()),
        ("cut", rmm_uvm.mr.ManagedMemoryResource(driver, prefetch="never")),
    ):
        buffers = [rmm.DeviceBuffer(size=BYTES, mr=mr) for _ in range(2)]
        regions = [buffer.ptr for buffer in buffers]
        for where in ("device", "host", "device"):  # host pages are taken for the first time here
            driver.migrate(regions[0], BYTES, where)
        for where in ("device", "host"):
            driver.migrate(regions[1], BYTES, where)
        for beside in (False, True):
            rows += rows_of(driver, regions, mapping, beside=beside)
        del buffers
    verdicts = verdicts_of(rows)
    harness.write_json(arguments.json, "migration_threads", {"rows": rows, "verdicts": verdicts})
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()

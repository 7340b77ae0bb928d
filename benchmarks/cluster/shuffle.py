# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An all-to-all shuffle of a cuDF frame between two workers: ours against stock Dask-CUDA.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/cluster/shuffle.py --json FILE

dask-cudf's `DataFrame.shuffle("key")` by tasks, which keeps the data on the GPUs; the method that
Dask picks by itself ("p2p") goes through host memory. Partitions are generated on the workers, and
reduced there to sums once shuffled: the time is that of all three. Ours and the cudaMalloc pool run
interleaved; stock managed workers run afterwards, since two managed clusters would not stay under
24 GiB.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
import time
from pathlib import Path
from typing import Any

from rmm_uvm.support.units import parse_bytes

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.cluster import tasks
from benchmarks.cluster.chains import Chain, ClusterProcess, make_chain
from benchmarks.cluster.exchange import describe_workers, run_on_workers, wait_until_released
from benchmarks.common import harness

ROW_BYTES = 32
CUDA_BYTES = 30 << 30
MANAGED_BYTES = 12 << 30
"""Of one worker. At most its half of the frame, split, and what it has received of the other's."""
SLOW_ROUNDS = 2
LEAST_OF_STOCK = 0.8


def shuffle(client: Any, partitions: int, rows: int, keys: int, method: str) -> float:
    """Shuffle the frame once, check what arrives, and return the seconds."""
    import dask
    import dask.dataframe as dd
    import dask_cudf  # noqa: F401 - tells Dask how cuDF frames are split and joined

    # Not above: every worker imports this file before it knows which GPU is its own.
    from benchmarks.cluster.shuffle_tasks import check_frame, make_frame

    frame = dd.from_map(
        functools.partial(make_frame, rows=rows, keys=keys),
        range(partitions),
        meta=make_frame(0, 1, keys).iloc[:0],
    )
    shuffled = frame.shuffle("key", shuffle_method=method, ignore_index=True)
    checks = [dask.delayed(check_frame, pure=False)(part) for part in shuffled.to_delayed()]
    begin = time.perf_counter()
    arrived = client.gather(client.compute(checks))
    seconds = time.perf_counter() - begin
    refuse_wrong(arrived, partitions * rows, keys)
    wait_until_released(client)
    return seconds


def refuse_wrong(arrived: list[Any], rows: int, keys: int) -> None:
    """Raise RuntimeError unless every row has arrived, intact, and each key in one partition."""
    got = {
        "rows": sum(each.rows for each in arrived),
        "sum of rows": sum(each.row_sum for each in arrived),
        "distinct keys, added up": sum(each.distinct_keys for each in arrived),
        "partitions with rows left out": sum(
            each.rows * keys != each.distinct_keys * rows for each in arrived
        ),
        "wrong values": sum(each.wrong_values for each in arrived),
    }
    expected = dict(zip(got, (rows, rows * (rows - 1) // 2, keys, 0, 0), strict=True))
    if got != expected:
        raise RuntimeError(f"the shuffle's result is wrong: {got} in place of {expected}")


def chain(name: str, ipc_pool_size: str) -> Chain:
    return make_chain(
        name, cuda_bytes=CUDA_BYTES, managed_bytes=MANAGED_BYTES, ipc_pool_size=ipc_pool_size
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total", default="8GiB")
    parser.add_argument("--partitions", type=int, default=32)
    parser.add_argument("--method", default="tasks")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--ipc-pool-size", default="256MiB")
    parser.add_argument("--chains", nargs="+", default=("stock-cuda", "ours", "stock-managed"))
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    harness.require_managed_on_gpus(2, {"two workers": 2 * MANAGED_BYTES})
    rows = parse_bytes(arguments.total) // ROW_BYTES // arguments.partitions
    keys = rows // 8  # each occurs eight times the number of partitions
    what = (arguments.partitions, keys * 8, keys, arguments.method)
    seconds: dict[str, list[float]] = {}
    moved: dict[str, Any] = {}
    workers: dict[str, Any] = {}
    together = [name for name in arguments.chains if name != "stock-managed"]
    alone = [name for name in arguments.chains if name == "stock-managed"]
    for names, rounds, warm_ups in (
        (together, arguments.rounds, arguments.warm_ups),
        (alone, SLOW_ROUNDS, 1),
    ):
        with contextlib.ExitStack() as stack:
            clusters = {
                name: stack.enter_context(ClusterProcess(chain(name, arguments.ipc_pool_size)))
                for name in names
            }
            workers |= {name: each.call(describe_workers) for name, each in clusters.items()}
            runs = {
                name: functools.partial(each.call, shuffle, *what)
                for name, each in clusters.items()
            }
            seconds |= harness.interleaved(runs, rounds, warm_ups) if runs else {}
            if "ours" in clusters:
                ours = clusters["ours"]
                moved["communication_totals"] = ours.call(
                    run_on_workers, tasks.communication_totals
                )
                moved["peak_managed_bytes"] = ours.call(run_on_workers, tasks.peak_managed_bytes)
    verdicts: dict[str, Any] = {"results right": True}  # or an error had ended the program
    if moved:
        overflow = sum(each["sent_overflow_bytes"] for each in moved["communication_totals"])
        verdicts["managed bytes on the wire path"] = harness.judged_at_most(overflow, 0)
        if "stock-cuda" in seconds:
            verdicts["speed of ours / stock-cuda"] = harness.judged_at_least(
                harness.ratio(seconds, "stock-cuda", "ours"), LEAST_OF_STOCK
            )
    harness.write_json(
        arguments.json,
        "dask_shuffle",
        {
            "total_bytes": arguments.partitions * keys * 8 * ROW_BYTES,
            "partitions": arguments.partitions,
            "method": arguments.method,
            "ipc_pool_size": arguments.ipc_pool_size,
            "workers": workers,
            "seconds": seconds,
            "medians": harness.medians(seconds),
            **moved,
            "verdicts": verdicts,
        },
    )
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())

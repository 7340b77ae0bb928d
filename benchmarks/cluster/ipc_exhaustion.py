# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An IPC pool that is far too small: results of 4 GiB through 64 MiB, between two managed workers.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/cluster/ipc_exhaustion.py --json FILE

It has to complete with the contents right, to say so with an `IpcPoolWarning`, and to keep a speed
that is still far above that of managed memory on the wire path.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rmm_uvm.support.units import parse_bytes

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.cluster import tasks
from benchmarks.cluster.chains import ClusterProcess, make_chain
from benchmarks.cluster.exchange import describe_workers, exchange, gb_per_second, run_on_workers
from benchmarks.common import harness

MANAGED_BYTES = 10 << 30
"""Of one worker: a result that it has made and one that it has fetched."""
LEAST_GB_PER_SECOND = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ipc-pool-size", default="64MiB")
    parser.add_argument("--size", default="4GiB")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--warm-ups", type=int, default=2, help="one each way")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    harness.require_managed_on_gpus(2, {"two workers": 2 * MANAGED_BYTES})
    nbytes = parse_bytes(arguments.size)
    chain = make_chain(
        "ours", cuda_bytes=0, managed_bytes=MANAGED_BYTES, ipc_pool_size=arguments.ipc_pool_size
    )
    with ClusterProcess(chain) as cluster:
        workers = cluster.call(describe_workers)
        cluster.call(run_on_workers, tasks.keep_pool_warnings)
        times = [
            cluster.call(exchange, number, nbytes)
            for number in range(arguments.warm_ups + arguments.rounds)
        ][arguments.warm_ups :]
        heard = cluster.call(run_on_workers, tasks.kept_pool_warnings)
        moved = cluster.call(run_on_workers, tasks.communication_totals)
    speed = gb_per_second(times, nbytes)
    verdicts: dict[str, Any] = {
        "contents right": True,  # or an error had ended the program
        "IpcPoolWarning on both workers": all(heard),
        "GB/s": harness.judged_at_least(speed, LEAST_GB_PER_SECOND),
    }
    harness.write_json(
        arguments.json,
        "ipc_exhaustion",
        {
            "ipc_pool_size": arguments.ipc_pool_size,
            "result_bytes": nbytes,
            "workers": workers,
            "times": times,
            "worker_gb_per_second": gb_per_second(times, nbytes, "worker_seconds"),
            "warnings": heard,
            "communication_totals": moved,
            "verdicts": verdicts,
        },
    )
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())

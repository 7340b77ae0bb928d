# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Does libcudf's own prefetch on column access help? With everything resident, and from the host.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/pool/cudf_prefetch.py --json FILE

The cuDF pass on our chain with ``pylibcudf.prefetch`` off and on: steady with all data on the
device, and right after the whole pool was moved to the host, as after an eviction.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from pylibcudf import prefetch

from rmm_uvm.drivers import cuda_driver

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.chains import make_chain
from benchmarks.pool.cudf_pass import Pass

POOL_BYTES = 7 << 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    driver = cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    chain = make_chain("managed", POOL_BYTES, driver)
    run = Pass(chain, arguments.rows)
    columns = [run.frame[name] for name in run.frame.columns]

    def timed(*, on: bool, from_host: bool) -> float:
        if from_host:
            for column in columns:
                interface = column.__cuda_array_interface__
                driver.prefetch(interface["data"][0], len(column) * 4, "host")
            driver.synchronize()
        (prefetch.enable if on else prefetch.disable)()
        begin = time.perf_counter()
        run()
        seconds = time.perf_counter() - begin
        prefetch.disable()
        return seconds

    seconds = harness.interleaved(
        {
            f"{'on' if on else 'off'}, data on the {'host' if host else 'device'}": (
                lambda on=on, host=host: timed(on=on, from_host=host)
            )
            for host in (False, True)
            for on in (False, True)
        },
        arguments.rounds,
    )
    verdicts = {
        f"on / off, data on the {where}": round(
            harness.ratio(seconds, f"on, data on the {where}", f"off, data on the {where}"), 4
        )
        for where in ("device", "host")
    }
    harness.write_json(
        arguments.json,
        "cudf_prefetch",
        {
            "rows": arguments.rows,
            "seconds": seconds,
            "medians": harness.medians(seconds),
            "verdicts": verdicts,
        },
    )


if __name__ == "__main__":
    main()

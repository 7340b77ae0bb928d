# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that is killed in mid-transfer: what the others lose, and what Dask makes of it.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/cluster/worker_killed.py --json FILE

Three workers; a large result goes from A to B while the others exchange small ones. Once A, the
sender, kills itself (SIGKILL) with a chunk under way, once B, the receiver. Then the task's answer
has to be right, the others' exchanges too, and each survivor's memory and chunks as before, when
the quarantine of the broken transfer is over. With one GPU, `--gpus 1`, all are on that.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from distributed import wait

from rmm_uvm.support.units import parse_bytes

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.cluster import kill_tasks, tasks
from benchmarks.cluster.chains import addresses
from benchmarks.cluster.exchange import wait_until_released
from benchmarks.cluster.nannies import nanny_cluster
from benchmarks.common import harness

WORKERS = 3
MANAGED_BYTES = 7 << 30
SMALL_BYTES, SMALL_RESULTS = 16 << 20, 20
PATIENCE_SECONDS = 180
WHOLE_AGAIN_SECONDS = 30
KILLED = {"sender": ("sent", 0), "receiver": ("received", 1)}
"""Which of its counts says that the transfer is under way, and which worker it is."""


def make_on(client: Any, giver: str, nbytes: int, results: int) -> list[Any]:
    """Return results that lie on `giver`, number `i` with the pattern of seed `i`."""
    made = [
        client.submit(tasks.make, nbytes, seed, workers=[giver], pure=False)
        for seed in range(results)
    ]
    wait(made)
    return made


def take_on(client: Any, taker: str, made: list[Any]) -> list[Any]:
    """Return tasks on `taker` that take them, and count what is wrong with them."""
    return [
        client.submit(tasks.count_wrong, array, seed, workers=[taker], pure=False)
        for seed, array in enumerate(made)
    ]


def exchange_all(client: Any, nbytes: int) -> int:
    """Let every worker pass a result on to every other; return how many elements are wrong."""
    all_of_them = addresses(client)
    wrong = 0
    for giver in all_of_them:
        for taker in all_of_them:
            if giver != taker:
                wrong += sum(
                    client.gather(take_on(client, taker, make_on(client, giver, nbytes, 1)))
                )
                wait_until_released(client)
    return wrong


def kill(client: Any, who: str, nbytes: int) -> dict[str, Any]:
    """Kill a worker in mid-transfer; return what became of the others."""
    direction, place = KILLED[who]
    workers = addresses(client)
    a, b, c = workers
    victim = workers[place]
    survivors = [each for each in workers if each != victim]
    giver, taker = (c, b) if victim == a else (a, c)
    before = client.run(kill_tasks.memory_state, workers=survivors)

    # Not tied to their workers: those may be gone.
    loose = {"allow_other_workers": True, "pure": False}
    array = client.submit(tasks.make, nbytes, 7, workers=[a], **loose)
    wait(array)
    small = make_on(client, giver, SMALL_BYTES, SMALL_RESULTS)
    client.run(kill_tasks.kill_in_transfer, direction, workers=[victim])
    begin = time.perf_counter()
    answer = client.submit(tasks.count_wrong, array, 7, workers=[b], **loose)
    others = take_on(client, taker, small)
    wrong = answer.result(timeout=PATIENCE_SECONDS)
    recovery_seconds = time.perf_counter() - begin
    wrong_of_others = sum(client.gather(others))
    killed = victim not in addresses(client)
    del array, answer, small, others
    wait_until_released(client)

    begin = time.perf_counter()
    while not (whole := all_whole(client, before)):
        if time.perf_counter() - begin > WHOLE_AGAIN_SECONDS:
            break
        time.sleep(0.1)
    whole_seconds = time.perf_counter() - begin
    after = client.run(kill_tasks.memory_state, workers=survivors)
    aborted = sum(after[s]["aborted_transfers"] - before[s]["aborted_transfers"] for s in survivors)
    client.wait_for_workers(WORKERS, timeout=PATIENCE_SECONDS)  # the nanny has started another
    return {
        "killed": killed,
        "transfers_aborted": aborted,
        "wrong_elements": wrong,
        "recovery_seconds": recovery_seconds,
        "others_wrong_elements": wrong_of_others,
        "whole_again": whole,
        "whole_again_after_seconds": whole_seconds,
        "before": list(before.values()),
        "after": list(after.values()),
        "wrong_elements_afterwards": exchange_all(client, SMALL_BYTES),
    }


def all_whole(client: Any, before: dict[str, dict[str, Any]]) -> bool:
    """Return whether the memory of these workers is as it was, and all their chunks are free."""
    states = client.run(kill_tasks.memory_state, workers=list(before))
    return all(
        state["managed_bytes"] == before[address]["managed_bytes"]
        and state["free_chunks"] == state["chunks"] == before[address]["chunks"]
        and state["in_quarantine"] == 0
        for address, state in states.items()
    )


def judge(who: str, outcome: dict[str, Any]) -> dict[str, bool]:
    """Return the verdicts on one kill."""
    return {
        f"{who} killed in mid-transfer": outcome["killed"] and outcome["transfers_aborted"] >= 1,
        f"{who} killed: Dask has the right result": outcome["wrong_elements"] == 0,
        f"{who} killed: the others go on": outcome["others_wrong_elements"] == 0
        and outcome["wrong_elements_afterwards"] == 0,
        f"{who} killed: no memory lost": outcome["whole_again"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--size", default="2GiB", help="of the result whose transfer is broken")
    parser.add_argument("--managed", default=str(MANAGED_BYTES), help="of each worker")
    parser.add_argument("--ipc-pool-size", default="256MiB")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    managed_bytes = parse_bytes(arguments.managed)
    harness.require_managed_on_gpus(arguments.gpus, {"three workers": WORKERS * managed_bytes})
    devices = [number % arguments.gpus for number in range(WORKERS)]
    settings = {"ipc-pool-size": arguments.ipc_pool_size}
    with nanny_cluster(devices, managed_bytes, settings) as client:
        exchange_all(client, SMALL_BYTES)  # staging is made, kernels are compiled
        outcomes = {who: kill(client, who, parse_bytes(arguments.size)) for who in KILLED}
    verdicts = {k: v for who, outcome in outcomes.items() for k, v in judge(who, outcome).items()}
    harness.write_json(
        arguments.json,
        "worker_killed",
        {
            "gpus": arguments.gpus,
            "result_bytes": parse_bytes(arguments.size),
            "ipc_pool_size": arguments.ipc_pool_size,
            "outcomes": outcomes,
            "verdicts": verdicts,
        },
    )
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One result that travels from a worker to another, timed and checked.

Run by a `ClusterProcess`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from distributed import wait

from benchmarks.cluster import tasks
from benchmarks.cluster.chains import addresses

RELEASE_SECONDS = 30
IDLE_SECONDS = 0.03
"""Before a round is timed: what a client is asked within 10 ms of the last time, it sends later."""


def exchange(client: Any, number: int, nbytes: int) -> dict[str, float]:
    """Move a new array from one worker to the other, which way says `number`; return the times.

    ``client_seconds`` from submitting the task that takes the array until its answer is there,
    ``worker_seconds`` for fetching alone, as the receiving worker logs it.
    """
    a, b = addresses(client)[:: 1 if number % 2 == 0 else -1]
    key = f"array-{number}"
    array = client.submit(tasks.make, nbytes, number, workers=[a], pure=False, key=key)
    wait(array)
    time.sleep(IDLE_SECONDS)
    begin = time.perf_counter()
    answer = client.submit(tasks.count_wrong, array, number, workers=[b], pure=False)
    wrong = answer.result()
    seconds = time.perf_counter() - begin
    if wrong:
        raise RuntimeError(f"{wrong} elements of {nbytes} bytes from {a} to {b} are wrong")
    fetched = client.run(tasks.transfer_seconds, key, workers=[b])[b]
    if fetched is None:
        raise RuntimeError(f"{b} did not fetch {key}: nothing was measured")
    del array, answer
    wait_until_released(client)
    return {"client_seconds": seconds, "worker_seconds": fetched}


def wait_until_released(client: Any) -> None:
    """Return when no worker holds a result, so that the memory is free for the next."""
    until = time.monotonic() + RELEASE_SECONDS
    while any(client.run(tasks.stored_results).values()):
        if time.monotonic() > until:
            raise RuntimeError(f"results are still held {RELEASE_SECONDS} s after their release")
        time.sleep(0.002)


def run_on_workers(client: Any, function: Any) -> list[Any]:
    """Return what `function` returns on each worker, in the order of their GPUs."""
    answers = client.run(function)
    return [answers[address] for address in addresses(client)]


def describe_workers(client: Any) -> list[dict[str, Any]]:
    """Return GPU and memory resource of each worker.

    Raises
    ------
    RuntimeError
        If two are on one GPU: what goes between them is not what is to be measured.
    """
    described = run_on_workers(client, tasks.describe)
    if len({each["uuid"] for each in described}) != len(described):
        raise RuntimeError(f"two workers share a GPU: {described}")
    return described


def gb_per_second(
    times: Sequence[dict[str, float]], nbytes: int, what: str = "client_seconds"
) -> float:
    """Return the speed of the median time, 1e9 bytes a second."""
    return nbytes / statistics.median(each[what] for each in times) / 1e9

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Several threads of a program over one budget, and a process that forks in the middle of it."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.residency import Budget

from ..support.known_contents import Buffer

MIB = 1 << 20
THREADS, STEPS = 8, 120


def make_pool() -> Any:
    """Return a pool with a budget that a thread keeps, and a neighbour."""
    return rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device("64MiB", backing=True, neighbors=1),
        initial_pool_size="32MiB",
        maximum_pool_size="48MiB",
        device_budget=Budget(8 * MIB, neighbors=[1], board=None),
    )


def program(pool: Any, seed: int) -> list[tuple[int, int]]:
    """Do anything with buffers of one's own; return those that changed."""
    choose = random.Random(seed)
    live: list[Buffer] = []
    changed = []
    for step in range(STEPS):
        action = choose.choice(("allocate", "free", "touch", "prefetch", "evict", "pin", "advise"))
        if action == "allocate" or not live:
            nbytes = choose.choice([17, 5000, MIB, 2 * MIB, 3 * MIB + 1])
            with contextlib.suppress(MemoryError):  # the others have it
                live.append(Buffer(pool, pool.allocate(nbytes), nbytes))
                live[-1].write(seed * STEPS + step)
            continue
        buffer = choose.choice(live)
        if action == "free":
            live.remove(buffer)
            changed += [buffer.region] * buffer.changed
            pool.deallocate(*buffer.region)
        elif action == "pin":
            with rmm_uvm.pin(buffer.region, mr=pool):
                rmm_uvm.touch(buffer.region, mr=pool)
        elif action == "advise":
            rmm_uvm.advise(buffer.region, preferred=choose.choice(["host", "none"]), mr=pool)
        else:
            getattr(rmm_uvm, action)(buffer.region, mr=pool, stream=seed)
            pool.driver.touch(*buffer.region)
        changed += [each.region for each in live if each.changed]
    for buffer in live:
        pool.deallocate(*buffer.region)
    return changed


def test_threads_of_one_budget_keep_their_contents_and_its_accounts() -> None:
    pool = make_pool()
    with ThreadPoolExecutor(THREADS) as executor:
        changed = executor.map(lambda seed: program(pool, seed), range(THREADS))
        assert list(changed) == [[]] * THREADS
    assert pool.get_allocated_bytes() == 0
    found = rmm_uvm.residency_statistics(pool)
    assert (found.pinned_bytes, found.failed_calls) == (0, 0)
    assert found.resident_bytes <= found.budget_bytes  # nothing is wanted any more


def test_child_of_a_fork_reads_what_was_written_and_watches_nothing() -> None:
    pool = make_pool()
    with rmm_uvm.monitor(driver=pool.driver, publish=False, on_finding=None) as monitor:
        live = [Buffer(pool, pool.allocate(2 * MIB), 2 * MIB) for _ in range(8)]
        for number, buffer in enumerate(live):
            rmm_uvm.touch(buffer.region, mr=pool)
            buffer.write(number)
        child = os.fork()
        if child == 0:
            right = not monitor.running and not any(buffer.changed for buffer in live)
            live[0].write(100)  # its own copy
            os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert monitor.running
        assert [buffer.region for buffer in live if buffer.changed] == []
        assert rmm_uvm.touch([buffer.region for buffer in live], mr=pool) == 16 * MIB
    for buffer in live:
        pool.deallocate(*buffer.region)


@pytest.mark.parametrize("end", ["del buffers, pool; rmm_uvm.restore()", "rmm_uvm.restore()", ""])
def test_child_of_a_fork_ends_although_the_threads_of_its_budget_are_not_there(end: str) -> None:
    # The thread is often in the middle of something: what it holds must not stay taken.
    program = f"""
import os, sys
import rmm, rmm_uvm
from rmm_uvm.residency import Budget
device = rmm_uvm.simulated_device("64MiB", backing=True)
rmm_uvm.reinitialize("16MiB", "96MiB", driver=device, device_budget=Budget(8 << 20))
pool = rmm.mr.get_per_device_resource(0)
for _ in range(10):
    buffers = [rmm.DeviceBuffer(size=2 << 20, mr=pool) for _ in range(8)]
    child = os.fork()
    if child == 0:
        {end or "pass"}
        sys.exit(7)
    if (status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) != 7:
        sys.exit(f"a child ended with {{status}}")
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], timeout=60, check=False)
    assert done.returncode == 0

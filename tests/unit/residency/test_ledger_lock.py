# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The ledger's lock and Python's: who waits for the one does not keep the other."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rmm_uvm

MIB = 1 << 20
ADDRESS_OF_NOBODY = 4096
LOCKING: dict[str, Callable[[Any], object]] = {
    "advise": lambda prefetcher: prefetcher.advise(ADDRESS_OF_NOBODY, MIB, True),
    "holds": lambda prefetcher: prefetcher.holds(ADDRESS_OF_NOBODY),
    "pin": lambda prefetcher: prefetcher.pin(ADDRESS_OF_NOBODY, MIB),
    "residency": lambda prefetcher: prefetcher.residency(),
    "statistics": lambda prefetcher: prefetcher.statistics(),
    "unpin": lambda prefetcher: prefetcher.unpin(ADDRESS_OF_NOBODY, MIB),
}


@pytest.fixture
def threads_that_do_not_yield() -> Iterator[None]:
    """A thread keeps the interpreter's lock until it lets go of it by itself."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(usual)


def others_run_during(call: Callable[[], object], seconds: float) -> bool:
    ran: list[bool] = []
    gate = threading.Lock()
    gate.acquire()

    def wait_and_run() -> None:
        with gate:
            ran.append(True)

    other = threading.Thread(target=wait_and_run)
    other.start()
    gate.release()  # keeps the interpreter's lock
    end = time.monotonic() + seconds
    while not ran and time.monotonic() < end:
        call()
    found = bool(ran)
    other.join()
    return found


@pytest.mark.usefixtures("threads_that_do_not_yield")
@pytest.mark.parametrize("name", sorted(LOCKING))
def test_call_that_takes_the_ledgers_lock_lets_other_threads_run(name: str) -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    prefetcher = mr.managed_mr.residency
    assert others_run_during(lambda: LOCKING[name](prefetcher), seconds=30)


@pytest.mark.usefixtures("threads_that_do_not_yield")
def test_call_that_takes_no_lock_lets_none_run() -> None:
    # The twin: what is seen above is that the calls let go.
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    prefetcher = mr.managed_mr.residency
    assert not others_run_during(lambda: prefetcher.slab_bytes, seconds=0.5)


_PROGRAM = """
import sys, threading
import rmm_uvm
MIB = 1 << 20
mr = rmm_uvm.managed_pool(
    driver="simulated:64MiB", device_budget="16MiB", initial_pool_size="48MiB"
)
prefetcher = mr.managed_mr.residency

def work():
    for _ in range(60):
        address = mr.allocate(4 * MIB)
        thing = (address, 4 * MIB)
        with rmm_uvm.pin(thing, mr=mr):
            prefetcher.residency(), prefetcher.statistics(), prefetcher.holds(address)
        rmm_uvm.advise(thing, read_mostly=True, preferred="host", mr=mr)
        rmm_uvm.evict(thing, mr=mr)
        rmm_uvm.touch(thing, mr=mr)
        mr.deallocate(address, 4 * MIB)

sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
prefetcher.flush()
print(prefetcher.advised_bytes, prefetcher.residency()["pinned_bytes"])
"""


def test_threads_that_hint_and_ask_and_allocate_do_not_halt_one_another() -> None:
    # In a process of its own: who halts with the interpreter's lock cannot fail a test.
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "0 0\n"), done.stderr

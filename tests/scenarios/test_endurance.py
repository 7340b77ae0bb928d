# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A hundred million allocations: the run in little, what is kept of the whole, and its verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import rmm_uvm

from .residency_scripts import BENCHMARKS, committed, missed, run_alone, script

PLACES = os.pathsep.join([*filter(None, sys.path), str(BENCHMARKS.parent)])  # of imports
benchmark = script("endurance/allocations")
extents = script("common/free_extents")
levels = script("common/process_levels")
stamped = script("common/stamped")
judge = script("endurance/verdicts")
KEPT = committed("endurance")
MIB = 1 << 20
RSS, HEAP = "resident memory of the process grew, bytes", "heap grew, bytes"
FRAGMENTED = "fragmentation, second half / first"
BLOCKS = "blocks needed for the live bytes, second half / first"
SLOWER = "time of an allocation, last quarter / first"
# Of a run of seconds: it learns until half of it is over, and is no mean of anything.
NEEDS_LONGER = {RSS, HEAP, FRAGMENTED, BLOCKS, SLOWER}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    where = tmp_path_factory.mktemp("endurance") / "endurance.json"
    run_alone("endurance/allocations", "--small", "--json", str(where))
    kept: dict[str, Any] = json.loads(where.read_text())
    return kept


@pytest.mark.timeout(400)
def test_run_in_little_loses_nothing_and_gives_everything_back(small: dict[str, Any]) -> None:
    assert missed(small["verdicts"]) <= NEEDS_LONGER
    assert small["rows"][-1]["allocations"] >= benchmark.SMALL_ALLOCATIONS
    assert len(small["rows"]) == 12


@pytest.mark.timeout(400)
def test_heap_of_the_run_in_little_stays_once_it_is_learnt(small: dict[str, Any]) -> None:
    last = [row["heap_bytes"] for row in small["rows"][-4:]]
    assert max(last) - last[0] < MIB


# In a process of its own, whose files and memory are nobody else's.
LEAVE = """
import json, sys
from pathlib import Path
from benchmarks.endurance import allocations as endurance

leaks, left = sys.argv[1] == "True", []

def leave(mr):
    if leaks:
        left.append((bytearray(2 << 20), Path("/dev/null").open(), mr.allocate(1)))

found = endurance.endure(
    40_000, churn_steps=endurance.SMALL_CHURN_STEPS, before_sample=leave
)
print(json.dumps([found["rows"][-3:], found["end"]]))
"""


def told_by(program: str, *words: str) -> Any:
    """Return what a program told in its last line, which may import scripts of benchmarks/."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *words],
        env={**os.environ, "PYTHONPATH": PLACES},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(400)
@pytest.mark.parametrize("leaks", [False, True])
def test_what_is_left_behind_before_each_sample_is_seen(leaks: bool) -> None:
    rows, end = told_by(LEAVE, str(leaks))
    assert (rows[-1]["heap_bytes"] - rows[0]["heap_bytes"] >= 4 * MIB) is leaks
    assert rows[-1]["descriptors"] - rows[0]["descriptors"] == (2 if leaks else 0)
    assert (end["allocated_bytes"] > 0) is leaks


def test_committed_run_is_of_a_hundred_million_allocations_and_reaches_every_bound() -> None:
    assert KEPT["settings"]["allocations"] == benchmark.ALLOCATIONS == 100_000_000
    assert KEPT["rows"][-1]["allocations"] >= 100_000_000
    assert len(KEPT["rows"]) == 100
    assert missed(KEPT["verdicts"]) == set()


def test_committed_verdicts_are_those_of_the_committed_rows() -> None:
    asked = KEPT["settings"]["allocations"]
    assert judge.verdicts_of(KEPT["rows"], KEPT["end"], asked) == KEPT["verdicts"]


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"allocations": 99}, "allocations"),
        ({"rss_bytes": 102 * MIB}, RSS),
        ({"heap_bytes": 22 * MIB}, HEAP),
        ({"descriptors": 8}, "open files stayed as many"),
        ({"threads": 6}, "threads stayed as many"),
        ({"slab_bytes": 900 * MIB}, "the pool's slabs stayed as large"),
        ({"fragmentation_fraction": 0.9}, FRAGMENTED),
        ({"live_block_bytes": 210 * MIB}, BLOCKS),
        ({"ns_an_allocation": 9000}, SLOWER),
        ({"to_host_bytes": 0}, "memory moved both ways, and was dropped, in every part"),
        ({"checks": 0}, "contents were looked at in every part"),
        ({"overlaps": 1}, "no allocations overlapped"),
        ({"failed_calls": 1}, "no call of the driver failed"),
    ],
)
def test_run_that_grows_slows_down_or_stops_moving_misses_its_bound(
    changed: dict[str, float], verdict: str
) -> None:
    good = {
        **{"allocations": 100, "rss_bytes": 100 * MIB, "heap_bytes": 20 * MIB, "descriptors": 7},
        **{"threads": 5, "slab_bytes": 704 * MIB, "fragmentation_fraction": 0.4, "overlaps": 0},
        **{"live_bytes": 100 * MIB, "live_block_bytes": 110 * MIB, "ns_an_allocation": 6000},
        **{"to_device_bytes": 9, "to_host_bytes": 9, "dropped_bytes": 9, "checks": 9},
        **{"failed_calls": 0},
    }
    end = dict.fromkeys(KEPT["end"], 0)
    assert missed(judge.verdicts_of([good] * 12, end, 100)) == set()
    bad = [good] * 6 + [{**good, **changed}] * 6
    assert missed(judge.verdicts_of(bad, end, 100)) == {verdict}


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("wrong", "no contents were lost"),
        ("managed_bytes", "everything is free in the end"),
        ("resident_bytes", "everything is free in the end"),
        ("allocated_bytes", "everything is free in the end"),
        ("accounted_bytes", "everything is free in the end"),
    ],
)
def test_run_that_ends_with_something_left_misses_its_bound(name: str, verdict: str) -> None:
    end = {**KEPT["end"], name: 1}
    assert missed(judge.verdicts_of(KEPT["rows"], end, 100_000_000)) == {verdict}


def test_extents_are_the_gaps_between_what_is_alive() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    slabs = extents.Slabs(mr)
    live = [(mr.allocate(MIB), MIB) for _ in range(8)]
    assert slabs.extents(live).free_bytes == 0
    for number in (1, 3, 4):
        mr.deallocate(*live[number])
    kept = [live[number] for number in (0, 2, 5, 6, 7)]
    found = slabs.extents(kept)
    assert (found.free_bytes, found.largest_free_bytes, found.free_extents) == (
        *(3 * MIB, 2 * MIB),
        2,
    )
    assert found.fragmentation_fraction == pytest.approx(1 / 3)
    assert found.live_block_bytes == 8 * MIB
    assert found.overlaps == 0
    for one in kept:
        mr.deallocate(*one)


def test_extents_of_a_pool_that_grew_have_both_slabs() -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", initial_pool_size="4MiB", maximum_pool_size="16MiB"
    )
    slabs = extents.Slabs(mr)
    first = (mr.allocate(100), 100)
    slabs.look([first])
    second = (mr.allocate(4 * MIB), 4 * MIB)
    found = slabs.extents([first, second])
    assert mr.managed_mr.slab_bytes > 4 * MIB
    assert found.free_bytes == mr.managed_mr.slab_bytes - 256 - 4 * MIB
    for one in (first, second):
        mr.deallocate(*one)
    assert slabs.extents([]).largest_free_bytes == mr.managed_mr.slab_bytes - 4 * MIB


def test_allocations_that_overlap_are_counted() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    address = mr.allocate(MIB)
    assert extents.Slabs(mr).extents([(address, MIB), (address + 512, 256)]).overlaps == 1
    mr.deallocate(address, MIB)


@pytest.mark.parametrize("nbytes", [16, 256, 4096, 5000, 3 * MIB + 8])
def test_stamps_that_are_lost_are_seen(nbytes: int) -> None:
    device = rmm_uvm.simulated_device("16MiB", backing=True)
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB")
    mr.allocate(768)  # off a page's beginning
    one = stamped.Stamped(mr.allocate(nbytes), nbytes)
    assert not one.whole or one.stamp == 0
    one.write(1 << 40)
    assert one.whole
    stamped.words_at(one.address, nbytes // 8)[-1] = 0
    assert not one.whole


# What others of a process take or let go of would count: each in one of its own.
TAKE = """
import json, mmap, threading
from dataclasses import asdict
from pathlib import Path
from benchmarks.common.process_levels import process_levels

MIB, told, ending = 1 << 20, [], threading.Event()
told.append(process_levels())
on_heap = bytearray(4 * MIB)
with mmap.mmap(-1, 8 * MIB) as beside, Path("/dev/null").open():
    beside[:] = b"x" * len(beside)
    told.append(process_levels())
    told.append(process_levels(besides_bytes=MIB))
threading.Thread(target=ending.wait).start()
told.append(process_levels())
ending.set()
print(json.dumps([asdict(each) for each in told]))
"""


def test_levels_of_a_process_follow_what_it_takes() -> None:
    before, after, besides, beside_a_thread = told_by(TAKE)
    assert after["heap_bytes"] - before["heap_bytes"] >= 4 * MIB
    assert after["rss_bytes"] - before["rss_bytes"] >= 7 * MIB  # freed memory may go back meanwhile
    assert after["descriptors"] == before["descriptors"] + 1
    assert after["threads"] == before["threads"] == beside_a_thread["threads"] - 1
    assert besides["rss_bytes"] < after["rss_bytes"]


TAKE_AND_FREE = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from benchmarks.common.process_levels import process_levels

in_thread, taken, told = sys.argv[1] == "True", [], []

def take(number):  # blocks that are too small for a mapping of their own
    taken.extend(bytearray(100_000) for _ in range(number))

with ThreadPoolExecutor(1) as executor:

    def run(number):
        executor.submit(take, number).result() if in_thread else take(number)

    run(1)
    told.append(process_levels())
    run(120)
    run(1)  # it lies above them, so that they stay where they are
    told.append(process_levels())
    del taken[1:-1]
    told.append(process_levels())
print(json.dumps([asdict(each) for each in told]))
"""


@pytest.mark.parametrize("in_thread", [False, True])
def test_what_malloc_keeps_free_is_resident_and_not_held(in_thread: bool) -> None:
    before, full, after = told_by(TAKE_AND_FREE, str(in_thread))
    assert full["held_bytes"] - before["held_bytes"] >= 11 * MIB
    assert full["rss_bytes"] - after["rss_bytes"] <= MIB
    assert abs(after["held_bytes"] - before["held_bytes"]) <= MIB


IN_A_THREAD = """
from concurrent.futures import ThreadPoolExecutor
from benchmarks.common.malloc_arenas import mallinfo2, mappings, parts_of_arenas
from benchmarks.common.process_levels import process_levels

def take():
    return [bytearray(100_000) for _ in range(160)]

bytearray(30 << 20)  # as any large array that is freed, it raises malloc's thresholds
with ThreadPoolExecutor(1) as executor:
    executor.submit(take).result().clear()
    before = process_levels()
    taken = executor.submit(take).result()
    print(process_levels().rss_bytes - before.rss_bytes)
read, view = 0, memoryview(bytearray(8 << 20))  # into what is there: reading takes no memory
with open("/proc/self/smaps", "rb", buffering=0) as file:
    arenas_bytes = mallinfo2().arena
    while count := file.readinto(view[read:]):
        read += count
parts = parts_of_arenas(mappings(bytes(view[:read]).decode().splitlines()))
print(sum(one.end - one.begin for one in parts) - arenas_bytes, len(parts))
"""


def told_by_a_thread(**settings: str) -> list[int]:
    """Return what a process grows by where it takes what a thread freed, and of its arenas.

    By how much their parts are larger than malloc says, and how many parts there are.
    """
    # A nanny of Dask's, in a test before, leaves settings of malloc in the environment.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", IN_A_THREAD],
        env={**environment, "PYTHONPATH": PLACES, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return list(map(int, done.stdout.split()))


def test_what_a_thread_freed_stays_resident_unless_malloc_is_told_to_trim() -> None:
    assert told_by_a_thread()[0] < MIB
    assert told_by_a_thread(MALLOC_TRIM_THRESHOLD_="131072")[0] > 4 * MIB


@pytest.mark.parametrize(("most", "number"), [("1", 1), ("2", 2)])
def test_arenas_are_found_among_the_mappings(most: str, number: int) -> None:
    assert told_by_a_thread(MALLOC_ARENA_MAX=most)[1:] == [0, number]


def test_file_that_another_thread_has_open_for_a_moment_is_not_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = iter([8, 7, 8, 8, 8])
    monkeypatch.setattr(levels, "_open_descriptors", lambda: next(counted))
    assert levels.process_levels().descriptors == 7

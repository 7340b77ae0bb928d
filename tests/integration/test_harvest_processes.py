# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Offers and claims between real processes, which race, and are killed."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmm_uvm import harvest
from rmm_uvm.harvest import HarvestBoard

from ..other_process import OtherProcess, other_process

MIB = 1 << 20
GPU = "GPU-00000000-0000-0000-0000-000000000001"

# Each says in shared memory what it was granted, and looks at what the other was.
RACER = """
def race(directory, witness_path, mine, rounds, free_bytes):
    import mmap
    board = rmm_uvm.harvest.HarvestBoard(directory)
    with open(witness_path, "r+b") as file:
        words = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
    words[2 + mine] = 1
    while not words[3 - mine]:
        os.sched_yield()
    wrong = granted_bytes = 0
    for _ in range(rounds):
        granted = board.claim(GPU, 4 << 20, free_bytes=free_bytes, reserve_bytes=0)
        words[mine] = granted
        os.sched_yield()  # the other one is to run meanwhile, also on one processor
        wrong += granted + words[1 - mine] > 6 << 20
        words[mine] = 0
        board.cancel(GPU, granted)
        granted_bytes += granted
    return wrong, granted_bytes, board.held(GPU)
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[OtherProcess, OtherProcess]]:
    with other_process() as first, other_process() as second:
        for each in (first, second):
            each.ask(f"GPU = {GPU!r}\n{RACER}")
        yield first, second


def join(process: OtherProcess, directory: Path) -> None:
    process.ask(f"GPU = {GPU!r}")
    process.ask(f"board = rmm_uvm.harvest.HarvestBoard({str(directory)!r})")


def race(
    pair: tuple[OtherProcess, OtherProcess],
    directories: tuple[Path, Path],
    witness: Path,
    free_bytes: int = 1 << 40,
) -> list[tuple[int, int, int]]:
    """Let both claim 10 000 times at once; return what each saw wrong, was granted, and kept."""
    witness.write_bytes(bytes(mmap.PAGESIZE))
    for number, (racer, directory) in enumerate(zip(pair, directories, strict=True)):
        racer.tell(f"race({str(directory)!r}, {str(witness)!r}, {number}, 10000, {free_bytes})")
    return [tuple(racer.answer()) for racer in pair]


@pytest.mark.parametrize("offered", [True, False])
def test_claimants_that_race_ten_thousand_times_never_exceed_what_there_is(
    tmp_path: Path, pair: tuple[OtherProcess, OtherProcess], offered: bool
) -> None:
    owner = HarvestBoard(tmp_path)  # there are 6 MiB, of which both together want 8
    if offered:
        assert owner.offer(GPU, 6 * MIB)
    free_bytes = (1 << 40) if offered else 6 * MIB
    answers = race(pair, (tmp_path, tmp_path), tmp_path / "witness", free_bytes)
    assert [wrong for wrong, _, _ in answers] == [0, 0]
    assert all(granted_bytes > 0 for _, granted_bytes, _ in answers)
    assert sum(granted_bytes for _, granted_bytes, _ in answers) < 2 * 10_000 * 4 * MIB
    assert [held for _, _, held in answers] == [0, 0]
    assert owner.claimed_by_others(GPU) == 0


def test_claimants_that_do_not_share_a_board_are_seen_to_exceed_the_offer(
    tmp_path: Path, pair: tuple[OtherProcess, OtherProcess]
) -> None:
    directories = (tmp_path / "one", tmp_path / "other")
    owners = []
    for directory in directories:
        directory.mkdir()
        owners.append(HarvestBoard(directory))
        assert owners[-1].offer(GPU, 6 * MIB)
    answers = race(pair, directories, tmp_path / "witness")
    assert sum(wrong for wrong, _, _ in answers) > 0


def test_killed_claimant_holds_nothing_more(tmp_path: Path) -> None:
    owner, other = HarvestBoard(tmp_path), HarvestBoard(tmp_path)
    assert owner.offer(GPU, 8 * MIB)
    with other_process() as claimant:
        join(claimant, tmp_path)
        asked = "board.claim(GPU, 8 << 20, free_bytes=1 << 40, reserve_bytes=0)"
        assert claimant.ask(asked) == 8 * MIB
        assert owner.claimed_by_others(GPU) == 8 * MIB
        assert claimant.pid in harvest.read_board(tmp_path).processes
        assert other.claim(GPU, 8 * MIB, free_bytes=1 << 40, reserve_bytes=0) == 0
        claimant.kill()
    assert owner.claimed_by_others(GPU) == 0
    assert claimant.pid not in harvest.read_board(tmp_path).processes
    assert other.claim(GPU, 8 * MIB, free_bytes=1 << 40, reserve_bytes=0) == 8 * MIB


def test_killed_owner_offers_nothing_more(tmp_path: Path) -> None:
    claimant = HarvestBoard(tmp_path)
    with other_process() as owner:
        join(owner, tmp_path)
        assert owner.ask("board.offer(GPU, 4 << 20) and board.set_busy(GPU, True)")
        assert claimant.claim(GPU, 8 * MIB, free_bytes=64 * MIB, reserve_bytes=0) == 4 * MIB
        assert owner.ask("board.offer(GPU, 0)")
        assert claimant.excess(GPU) == 4 * MIB
        assert claimant.busy(GPU)
        owner.kill()
    assert claimant.excess(GPU) == 0
    assert not claimant.busy(GPU)
    (device,) = harvest.read_board(tmp_path).devices
    assert device.offers == ()
    # Without an offer, what the driver says is free decides.
    assert claimant.claim(GPU, 8 * MIB, free_bytes=64 * MIB, reserve_bytes=0) == 8 * MIB


def test_forked_child_that_outlives_its_parent_keeps_no_claim(tmp_path: Path) -> None:
    owner = HarvestBoard(tmp_path)
    assert owner.offer(GPU, 8 * MIB)
    with other_process() as parent:
        join(parent, tmp_path)
        asked = "board.claim(GPU, 8 << 20, free_bytes=1 << 40, reserve_bytes=0)"
        assert parent.ask(asked) == 8 * MIB
        parent.ask(
            "started, says_so = os.pipe()\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    os.write(says_so, b'.')\n"
            "    while True:\n"
            "        __import__('time').sleep(600)\n"
            "os.read(started, 1)"
        )
        child = parent.ask("child")
        try:
            parent.kill()
            assert owner.claimed_by_others(GPU) == 0
        finally:
            os.kill(child, 9)


def test_claimants_killed_at_any_instant_leave_a_board_that_works(tmp_path: Path) -> None:
    owner, other = HarvestBoard(tmp_path), HarvestBoard(tmp_path)
    assert owner.offer(GPU, 8 * MIB)
    moments = random.Random(3)
    for _ in range(100):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                while True:  # joins, claims and leaves
                    board = HarvestBoard(tmp_path)
                    for _ in range(20):
                        granted = board.claim(GPU, 6 * MIB, free_bytes=1 << 40, reserve_bytes=0)
                        board.placed(GPU, granted)
                        board.release(GPU, granted)
            os._exit(1)
        until = time.perf_counter() + moments.uniform(0.0005, 0.003)
        while time.perf_counter() < until:
            assert owner.claimed_by_others(GPU) <= 8 * MIB  # of one process at a time
        os.kill(child, 9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
        assert owner.claimed_by_others(GPU) == 0
        assert other.claim(GPU, 8 * MIB, free_bytes=1 << 40, reserve_bytes=0) == 8 * MIB
        other.release(GPU, 8 * MIB)
    assert harvest.read_board(tmp_path).processes == (os.getpid(), os.getpid())


def test_owner_that_wants_its_memory_gets_it_from_live_claimants(
    tmp_path: Path, pair: tuple[OtherProcess, OtherProcess]
) -> None:
    owner = HarvestBoard(tmp_path)
    assert owner.offer(GPU, 64 * MIB)
    for each in pair:
        join(each, tmp_path)
        asked = "board.claim(GPU, 30 << 20, free_bytes=1 << 40, reserve_bytes=0)"
        assert each.ask(asked) == 30 * MIB
    assert owner.offer(GPU, 10 * MIB)
    for each in pair:
        each.tell(
            "while board.claimed_by_others(GPU) + board.held(GPU) > 10 << 20:\n"
            "    board.release(GPU, min(2 << 20, board.excess(GPU)))"
        )
    for each in pair:
        each.answer()
    assert 0 < owner.claimed_by_others(GPU) <= 10 * MIB
    for each in pair:
        each.ask("del board")

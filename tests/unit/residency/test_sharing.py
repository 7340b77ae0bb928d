# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Two pools of one process, each with a budget that follows, on one device: they share it."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmm_uvm
from rmm_uvm.residency import Budget
from rmm_uvm.residency.budget import auto_bytes

MIB = 1 << 20
CARD = 128 * MIB
ALL = auto_bytes(CARD)
HALF = ALL // 2
PIECE = 4 * MIB


class Program:
    """Data of a pool, each piece with a byte of its own, which are used one after the other."""

    def __init__(self, device: Any, mark: int, board: Path | None, *, background: bool = False):
        budget = Budget(
            ALL,
            "lru",
            follows=True,
            background=background,
            board=None if board is None else str(board),
        )
        self.device, self.mark = device, mark
        self.mr = rmm_uvm.managed_pool(driver=device, device_budget=budget)
        self.residency = self.mr.managed_mr.residency
        self.pieces: list[int] = []
        self.uses = 0

    def allocate(self, nbytes: int) -> None:
        for number in range(nbytes // PIECE):
            address = self.mr.allocate(PIECE)
            self.device.touch(address, PIECE, write=True)
            self.view(address)[:] = (self.mark + number) % 251
            self.pieces.append(address)

    def view(self, address: int) -> Any:
        memory = (ctypes.c_uint8 * PIECE).from_address(address)
        return np.frombuffer(memory, dtype=np.uint8)

    def step(self) -> None:
        for _ in range(4):
            number = self.uses % len(self.pieces)
            address = self.pieces[number]
            self.residency.touch(address, PIECE, address)
            self.device.touch(address, PIECE, write=True)
            assert (self.view(address)[:: 1 << 16] == (self.mark + number) % 251).all()
            self.uses += 1
        self.residency.run_pending()

    def end(self) -> None:
        for address in self.pieces:
            self.mr.deallocate(address, PIECE)
        self.pieces = []

    @property
    def budget(self) -> int:
        size_bytes = self.mr.budget_bytes
        assert isinstance(size_bytes, int)
        return size_bytes


@pytest.fixture
def device() -> Any:
    return rmm_uvm.simulated_device("128MiB", backing=True)


def run(programs: list[Program], ticks: int) -> int:
    """Let programs go on in turn; return the largest change of a budget between two ticks."""
    largest = 0
    for _ in range(ticks):
        for program in programs:
            before = program.budget
            program.step()
            largest = max(largest, abs(program.budget - before))
    return largest


def test_two_pools_have_a_half_each_and_keep_it(device: Any, tmp_path: Path) -> None:
    programs = [Program(device, mark, tmp_path) for mark in (1, 101)]
    for program in programs:
        program.allocate(104 * MIB)
    run(programs, 40)
    assert run(programs, 100) < ALL // 20
    for program in programs:
        assert program.budget == pytest.approx(HALF, rel=0.1)
        counts = rmm_uvm.residency_statistics(program.mr)
        assert counts.sharers == 1
        assert "and shares it with 1 other budget" in str(counts)
    for program in programs:
        program.end()


def test_twins_without_a_board_promise_more_than_there_is(device: Any) -> None:
    programs = [Program(device, mark, None) for mark in (1, 101)]
    for program in programs:
        program.allocate(104 * MIB)
    run(programs, 140)
    assert sum(program.budget for program in programs) > ALL * 1.1
    assert rmm_uvm.residency_statistics(programs[0].mr).sharers == 0
    for program in programs:
        program.end()


def test_small_pool_has_what_it_wants_and_all_comes_back_when_it_ends(
    device: Any, tmp_path: Path
) -> None:
    large, small = (Program(device, mark, tmp_path) for mark in (1, 101))
    large.allocate(160 * MIB)
    small.allocate(12 * MIB)
    run([large, small], 60)
    assert 12 * MIB <= small.budget <= 20 * MIB
    assert large.budget >= ALL - 20 * MIB
    small.end()
    small.mr.set_budget(None)
    run([large], 3)
    assert large.budget == ALL
    assert rmm_uvm.residency_statistics(large.mr).sharers == 0
    large.end()


def test_place_on_the_board_goes_with_the_budget(device: Any, tmp_path: Path) -> None:
    mr = rmm_uvm.managed_pool(driver=device, device_budget=None)
    for _ in range(70):  # more than a board has places
        mr.set_budget(Budget(ALL, follows=True, background=False, board=str(tmp_path)))
        assert mr.managed_mr.residency.board is not None
        assert len(rmm_uvm.harvest.read_board(tmp_path).processes) == 1
        mr.set_budget(None)
    assert rmm_uvm.harvest.read_board(tmp_path).processes == ()


def test_threads_share_without_being_asked(device: Any, tmp_path: Path) -> None:
    programs = [Program(device, mark, tmp_path, background=True) for mark in (1, 101)]
    for program in programs:
        program.allocate(104 * MIB)
    begun = time.monotonic()
    while not all(abs(program.budget - HALF) < HALF // 10 for program in programs):
        assert time.monotonic() - begun < 30
        for program in programs:
            program.step()
    for program in programs:
        program.end()


def test_nothing_is_offered_to_neighbours_for_it(device: Any, tmp_path: Path) -> None:
    program = Program(device, 1, tmp_path)
    assert program.residency.board is not None
    assert rmm_uvm.harvest.read_board(tmp_path).devices == ()


def test_handle_says_whether_it_is_agreed(tmp_path: Path) -> None:
    def told(board: str | None) -> str:
        budget = Budget(ALL, follows=True, board=board)
        handle = rmm_uvm.reinitialize(
            driver="simulated:128MiB", device_budget=budget, libraries=(), monitor=False
        )
        try:
            return str(handle)
        finally:
            rmm_uvm.restore()

    assert "sharing" not in told("auto")  # a simulated device is its process' own
    assert "with budgets that follow in other processes and pools" in " ".join(
        told(str(tmp_path)).split()
    )
    assert "as asked; goes by free memory, and has half" in " ".join(told(None).split())

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Chaos for some seconds, the same on every run, and the faults that it has to find."""

from __future__ import annotations

import _thread
import ctypes
import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.errors import MonitorWarning

from ..support.known_contents import Buffer
from .chaos import Chaos
from .rounds import rounds


def test_chaos_of_one_seed_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.stateful.rounds.PROGRAMS", 6, raising=True)  # half a round
    (done,) = rounds(0, 1, tmp_path)
    assert done.finding == "", (tmp_path / "1.log").read_text()
    assert 6 <= done.programs < 12
    assert done.operations > 150
    assert [path.name for path in tmp_path.glob("*.log")] == []


def lose_a_byte(program: Chaos) -> None:
    address, nbytes = program.live[-1].region
    ctypes.memset(address + nbytes // 2, 0, 1)


def hang_in_c(_program: Chaos) -> None:
    ctypes.PyDLL(None).pause()


def leak_managed_bytes(_program: Chaos) -> None:
    leaked.append(rmm_uvm.managed_pool("8MiB", driver=rmm_uvm.simulated_device("16MiB")))


def leak_a_thread(_program: Chaos) -> None:
    threading.Thread(target=threading.Event().wait, name="leaked", daemon=True).start()


def leak_a_thread_that_python_does_not_list(_program: Chaos) -> None:
    _thread.start_new_thread(time.sleep, (1000,))


def leak_a_file(_program: Chaos) -> None:
    leaked.append(os.open(os.devnull, os.O_RDONLY))


def leak_a_place_on_the_board(program: Chaos) -> None:
    leaked.append(rmm_uvm.harvest.HarvestBoard(program._folder))


def raise_in_a_thread(_program: Chaos) -> None:
    thread = threading.Thread(target=lambda: [][0], name="raises")
    thread.start()
    thread.join()


def raise_in_a_finalizer(_program: Chaos) -> None:
    class Raising:
        def __del__(self) -> None:
            raise ValueError("while it is deleted")

    Raising()


def log_an_error(_program: Chaos) -> None:
    logging.getLogger("rmm_uvm.watch").error("looking failed")  # as a monitor that goes on does


def warn_that_it_cannot(_program: Chaos) -> None:
    warnings.warn("device 0 cannot be watched", MonitorWarning, stacklevel=2)


def have_a_call_fail(program: Chaos) -> None:
    for call in ("discard", "discard_and_prefetch", "mark", "order"):
        program.device.fail_call(call, "driver_error")


def raise_in_a_thread_of_cpp(_program: Chaos) -> None:
    terminate = ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev  # what an exception ends in there
    ctypes.CDLL(None).pthread_create(ctypes.byref(ctypes.c_ulong()), None, terminate, None)
    time.sleep(100)


def crash(program: Chaos) -> None:
    program.neighbor_begins()  # which has the pipe, and outlives it
    os.kill(os.getpid(), signal.SIGSEGV)


leaked: list[Any] = []  # in the process of a round, which ends


@pytest.mark.parametrize(
    ("go_wrong", "finding", "told"),
    [
        (lose_a_byte, "a program went wrong", "changed_anywhere"),
        (
            hang_in_c,
            "a program hangs: it took more than 5 s",
            "in hang_in_c",
        ),
        (leak_managed_bytes, "a program went wrong", "in managed_bytes_add_up"),
        (leak_a_thread, "a program went wrong", "left behind: ['<Thread(leaked"),
        (leak_a_thread_that_python_does_not_list, "a program went wrong", "threads were left"),
        (leak_a_file, "a program went wrong", "left behind: ['/dev/null']"),
        (leak_a_place_on_the_board, "a program went wrong", "in _nobody_is_left_on_the_board"),
        (raise_in_a_thread, "a program went wrong", "in <Thread(raises, started"),
        (raise_in_a_finalizer, "a program went wrong", "ValueError: while it is deleted"),
        (log_an_error, "a program went wrong", "in the log of rmm_uvm.watch: looking failed"),
        (warn_that_it_cannot, "a program went wrong", "MonitorWarning where no call failed"),
        (have_a_call_fail, "a program went wrong", "in no_call_failed_by_itself"),
        (raise_in_a_thread_of_cpp, "the process was ended by SIGABRT", "in raise_in_a_thread_of"),
        (crash, "the process was ended by SIGSEGV", "crash"),
    ],
)
def test_planted_fault_is_found_with_the_seed_that_makes_it_again(
    go_wrong: Callable[[Chaos], None], finding: str, told: str, tmp_path: Path
) -> None:
    class Planted(Chaos):
        """Programs that go wrong once they have written for the fourth time."""

        patience_seconds = 0.2

        def __init__(self) -> None:
            super().__init__()
            self.process, self.wrong = os.getpid(), False

        def _write(self, buffer: Buffer) -> None:
            super()._write(buffer)
            if self.writes >= 4 and not self.wrong and os.getpid() == self.process:
                self.wrong = True
                go_wrong(self)

    most_seconds = 5 if go_wrong is hang_in_c else 100
    (done,) = rounds(0, 5, tmp_path, Planted, most_seconds)
    assert (done.seed, done.finding) == (5, finding)
    assert told in (tmp_path / "5.log").read_text()

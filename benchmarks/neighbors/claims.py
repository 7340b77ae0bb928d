# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An owner who offers what its budget has left on a board, and takes it back at one moment."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any

import rmm_uvm
from rmm_uvm.residency import Budget

MIB = 1 << 20
SPARE_BYTES = 16 * MIB  # that the owner leaves of its budget
_ANSWER_SECONDS = 60.0


class Owner:
    """A program with a budget and nothing in it, so that nearly all is offered.

    Parameters
    ----------
    driver : UvmDriver
        Of its device, which is the current one.
    folder : str
        Of the board.
    budget_bytes : int
        What it acts as if its device had.
    """

    def __init__(self, driver: Any, folder: str, budget_bytes: int) -> None:
        self._driver, self._bytes = driver, budget_bytes - SPARE_BYTES
        self._mr = rmm_uvm.managed_pool(
            driver=driver,
            initial_pool_size=budget_bytes,
            maximum_pool_size=budget_bytes,
            device_budget=Budget(budget_bytes, neighbors=[], board=folder),
        )
        self._prefetcher = self._mr.managed_mr.residency
        if self._prefetcher.board is None:
            raise SystemExit(f"there is no board in {folder}: {self._prefetcher.board_reason}")
        self._address = 0

    def take(self) -> dict[str, Any]:
        """Allocate nearly all at once and write it; return when, and what was waited."""
        begin = time.monotonic()
        self._address = int(self._mr.allocate(self._bytes))
        answered = time.monotonic()
        self._write()
        kept = self._prefetcher.residency()
        return {
            **{"begin": begin, "answered": answered, "written": time.monotonic()},
            "bytes": self._bytes,
            "reclaims": kept["reclaims"],
            "reclaim_wait_seconds": kept["reclaim_wait_seconds"],
        }

    def _write(self) -> None:
        if self._driver.info.simulated:
            self._driver.touch(self._address, self._bytes, write=True)
            return
        import cupy

        cupy.cuda.runtime.memset(self._address, 0x5A, self._bytes)
        cupy.cuda.runtime.deviceSynchronize()


def _run(pipe: Any, folder: str, budget_bytes: int, device: int) -> None:
    os.environ["RMM_UVM_MANAGED_LIMIT"] = str(budget_bytes)  # its part of the cap
    import cupy

    cupy.cuda.Device(device).use()
    owner = Owner(rmm_uvm.cuda_driver(device), folder, budget_bytes)
    pipe.send("offered")
    while (asked := pipe.recv()) == "take":
        pipe.send(owner.take())
    pipe.send(asked)


class OwnerProcess:
    """The same in a process of its own, on another GPU, until the end of the ``with`` block."""

    def __init__(self, folder: str, budget_bytes: int, device: int = 1) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self._pipe, there = context.Pipe()
        self._process = context.Process(
            target=_run, args=(there, folder, budget_bytes, device), daemon=True
        )

    def __enter__(self) -> OwnerProcess:
        self._process.start()
        self.answer()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.is_alive():
            self._pipe.send("end")
            self._process.join(10)
        if self._process.is_alive():
            self._process.kill()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.join()

    def begin_to_take(self) -> None:
        """Have it take its memory; the answer comes later."""
        self._pipe.send("take")

    def answer(self) -> Any:
        """Return what it says next."""
        if not self._pipe.poll(_ANSWER_SECONDS):
            raise SystemExit("the owner's process gives no answer: see what it printed")
        return self._pipe.recv()

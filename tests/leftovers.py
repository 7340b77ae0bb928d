# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a test leaves behind: threads that run, open files, managed memory, loggers' levels."""

from __future__ import annotations

import gc
import logging
import re
import sys
import threading
import traceback
from pathlib import Path

from rmm_uvm._lib import limits

# What CUDA, NVML and CUPTI open at their first use and keep; nothing of ours opens these.
_NVIDIAS_OWN = re.compile(
    r"/dev/nvidia(\d+|ctl|-caps/.+)|anon_inode:\[eventfd\]"
    r"|/dev/shm/(#\d+ \(deleted\)|cuda\.shm\..+)"
)
# Of this CUDA has two from the first, and two more from some time on. Process counters copy others.
_UVM, _CUDAS_OWN = "/dev/nvidia-uvm", 4
# Simulated cudaMalloc memory: as long as the device, which fixtures keep until after this check.
_SIMULATED_MEMORY = "/memfd:rmm-uvm-simulated (deleted)"
# Threads that were told to end and are joined by nobody: those of ours that end what was collected,
# and those of Dask that watch a worker's process. The latter end some 5 ms before a cluster is
# closed, if the machine has nothing else to do; Dask says itself that it does not join them.
_ENDING = re.compile(
    r"rmm_uvm close|AsyncProcess .+ watch (message queue|process join)|QueueFeederThread"
)
_PATIENCE_SECONDS = 10.0


class Before:
    """The threads, open files, managed memory and loggers' levels that there were at first."""

    def __init__(self, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._threads = set(threading.enumerate())
        self._files = _open_files()
        self._managed_bytes = limits._account.used_bytes
        self._levels = _levels()

    def left_behind(self) -> list[str]:
        """Return what there is now, and was not: threads that are ending may take their time."""
        if self._new():
            gc.collect()
            for thread in threading.enumerate():
                if thread not in self._threads and _ENDING.fullmatch(thread.name):
                    thread.join(self._patience_seconds)
        return self._new()

    def _new(self) -> list[str]:
        threads = [str(thread) for thread in threading.enumerate() if thread not in self._threads]
        there = _open_files()
        files = [target for number, target in there.items() if self._files.get(number) != target]
        if list(there.values()).count(_UVM) <= _CUDAS_OWN:
            files = [target for target in files if target != _UVM]
        # Libraries keep a pipe to wake their own threads up: both its ends are in this process.
        kept = [
            target
            for target in files
            if not (target.startswith("pipe:") and files.count(target) == 2)
            and not _NVIDIAS_OWN.fullmatch(target)
            and target != _SIMULATED_MEMORY
        ]
        # It counts against the cap of the whole process: less is left to all tests that come later.
        managed_bytes = limits._account.used_bytes - self._managed_bytes
        memory = [f"{managed_bytes} bytes of managed memory"] if managed_bytes > 0 else []
        levels = [
            f"the level {logging.getLevelName(level)} of logger {name or 'root'}"
            for name, level in _levels().items()
            if level != self._levels.get(name, logging.NOTSET)
        ]
        return threads + kept + memory + levels


def let_go_of_failure() -> None:
    """Clear the frames of what failed last: Python keeps its traceback, and that keeps pools."""
    error = getattr(sys, "last_value", None)
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        for frame, _ in traceback.walk_tb(error.__traceback__):
            _ = frame.f_locals  # before Python 3.13 a copy, of what pytest asked: made anew
        error = error.__cause__ or error.__context__


def _open_files() -> dict[str, str]:
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            found[link.name] = str(link.readlink())
        except FileNotFoundError:  # the descriptor of this very listing
            continue
    return found


def _levels() -> dict[str, int]:
    """Return the levels of our loggers and of the root, which decide what a later test sees."""
    found = {"": logging.getLogger().level}
    for name, logger in logging.Logger.manager.loggerDict.items():
        if name.partition(".")[0].startswith("rmm_uvm") and isinstance(logger, logging.Logger):
            found[name] = logger.level
    return found

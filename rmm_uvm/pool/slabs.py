# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Having pools give back the slabs that nobody uses.

Covers doing so, and what came of it. Does not cover finding the pools that are meant, nor when; see
`rmm_uvm.pool.trimming`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.support.units import format_bytes

__all__ = ["Trimmed", "trim_pools"]


@dataclass(frozen=True)
class Trimmed:
    """What came of `trim`.

    Attributes
    ----------
    given_back_bytes : int
        Managed memory that went back to the driver: slabs of which nothing was in use.
    discarded_bytes : int
        What is free in slabs of which something is in use. It takes no device memory any more, and
        is not copied. What of it was on the host keeps its host memory.
    reason : str
        Why not all that could go went; empty otherwise.
    """

    given_back_bytes: int
    discarded_bytes: int
    reason: str = ""

    def __str__(self) -> str:
        done = (
            f"{format_bytes(self.given_back_bytes)} given back, and "
            f"{format_bytes(self.discarded_bytes)} discarded beside what is in use"
        )
        return f"{done}: {self.reason}" if self.reason else done


def trim_pools(pools: Iterable[UvmResourceAdaptor]) -> Trimmed:
    """Have each of some pools give back what it can; see `rmm_uvm.trim`."""
    given_back_bytes, discarded_bytes = 0, 0
    reasons: dict[str, None] = {}
    with _without_rmms_log():
        for pool in pools:
            try:
                given_back, discarded, reason = pool.trim()
            except Exception as error:  # of RMM, or of CUDA: the others are trimmed all the same
                given_back, discarded, reason = 0, 0, str(error)
            given_back_bytes += given_back
            discarded_bytes += discarded
            if reason:
                reasons[f"device {pool.driver.info.device_id}: {reason}"] = None
    return Trimmed(given_back_bytes, discarded_bytes, "; ".join(reasons))


@contextmanager
def _without_rmms_log() -> Iterator[None]:
    """RMM's pool gives slabs back for a request that it cannot serve, and logs that as an error.

    A level that somebody sets meanwhile stays.
    """
    global _level
    with _quiet:
        _level = rmm.get_logging_level()
        off = type(_level).off
        rmm.set_logging_level(off)
        try:
            yield
        finally:
            if rmm.get_logging_level() == off:
                rmm.set_logging_level(_level)
            _level = None


def _renew() -> None:
    """In a child of a fork: the thread that was at it is not here."""
    global _quiet, _level
    _quiet = threading.Lock()
    if _level is not None:
        rmm.set_logging_level(_level)
        _level = None


_quiet = threading.Lock()
_level: Any = None  # of RMM's log, while it is off
os.register_at_fork(after_in_child=_renew)

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Having pools give back the slabs that nobody uses.

Covers doing so, and what came of it. Does not cover finding the pools that are meant, nor when; see
`rmm_uvm.pool.trimming`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
    with _without_rmms_log():
        told = [pool.trim() for pool in pools]
    reasons = dict.fromkeys(reason for _, _, reason in told if reason)
    return Trimmed(sum(t[0] for t in told), sum(t[1] for t in told), "; ".join(reasons))


@contextmanager
def _without_rmms_log() -> Iterator[None]:
    """RMM's pool gives slabs back for a request that it cannot serve, and logs that as an error."""
    with _quiet:
        level = rmm.get_logging_level()
        rmm.set_logging_level(type(level).off)
        try:
            yield
        finally:
            rmm.set_logging_level(level)


_quiet = threading.Lock()

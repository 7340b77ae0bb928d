# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Having pools give back the slabs that nobody uses.

Covers doing so, and what came of it. Does not cover finding the pools that are meant, nor when; see
`rmm_uvm.pool.trimming`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.support.process_lock import ProcessLock
from rmm_uvm.support.requirements import parse_version
from rmm_uvm.support.units import format_bytes

__all__ = ["RMM_KEEPS", "Trimmed", "trim_pools"]

_GIVES_BACK = (26, 10)  # the first RMM whose pool gives slabs back
RMM_KEEPS = (
    ""
    if parse_version(rmm.__version__)[:2] >= _GIVES_BACK
    else f"slabs stay in the pool of RMM {rmm.__version__}, which gives none back before 26.10"
)
"""Why slabs stay whatever is done; empty where they do not."""


@dataclass(frozen=True)
class Trimmed:
    """The result of `trim`.

    Attributes
    ----------
    given_back_bytes : int
        Managed memory that went back to the driver: slabs of which nothing was in use.
    discarded_bytes : int
        What is free in slabs that stay, mostly for what is in use of them. It is not copied any
        more, so that the kernel driver has its device memory for whoever asks; it counts as taken
        until then. What of it was on the host keeps its host memory.
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


def trim_pools(pools: Collection[UvmResourceAdaptor]) -> Trimmed:
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
    if RMM_KEEPS and any(pool.managed_mr.slab_bytes for pool in pools):
        reasons[RMM_KEEPS] = None
    return Trimmed(given_back_bytes, discarded_bytes, "; ".join(reasons))


@contextmanager
def _without_rmms_log() -> Iterator[None]:
    """RMM's pool gives slabs back for a request that it cannot serve, and logs that as an error.

    A level that somebody sets meanwhile stays. A child of a fork that began meanwhile has it back
    once it trims.
    """
    with _quiet():
        level = _levels.setdefault("before", rmm.get_logging_level())
        off = type(level).off
        rmm.set_logging_level(off)
        try:
            yield
        finally:
            if rmm.get_logging_level() == off:
                rmm.set_logging_level(level)
            _levels.clear()


_quiet = ProcessLock()
_levels: dict[str, Any] = {}  # of RMM's log, while it is off

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Gives back what a pool holds and nobody uses: to the device, the host and other processes.

Covers asking pools of `rmm_uvm.managed_pool` and `rmm_uvm.reinitialize` for it. Does not cover
torch's own allocator; see `rmm_uvm.torch`.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from typing import NamedTuple

import rmm

from rmm_uvm._lib.own_threads import OwnThread
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.pool.slabs import RMM_KEEPS, Trimmed, trim_pools
from rmm_uvm.support.messages import shown
from rmm_uvm.support.process_lock import ProcessLock

__all__ = ["Trimmed", "trim", "trim_when_idle"]

_LOOKS = 8  # in which nothing changed: then a pool is idle
_LEAST_SECONDS = 0.05


def trim(mr: rmm.mr.DeviceMemoryResource | None = None) -> Trimmed:
    """Give back what pools hold and nobody uses.

    A pool keeps the memory that was freed, to hand it out again. After a large step this is much,
    and other processes may need it.

    Parameters
    ----------
    mr : rmm.mr.DeviceMemoryResource, optional
        A managed pool; by default all that are installed.

    Returns
    -------
    Trimmed

    Raises
    ------
    AvailabilityError
        If no pool is installed.
    ConfigurationError
        If `mr` is no managed pool of ours.

    Notes
    -----
    Waits for the work that used the memory last. Thread-safe: who allocates or frees meanwhile may
    wait. The pool takes new memory when it needs it again, some of it at a time. What is not told:
    a slab that is as large as all addresses that its pool may take stays, and so do slabs of a pool
    that you built from RMM's own classes, and all slabs with an RMM before 26.10; what is free in
    them is discarded. RMM logs nothing meanwhile, in no thread.

    While a stream captures nothing is done, as far as the legacy stream knows of it: not of streams
    that were created to run beside it. Do not call it while one of those captures, nor where a CUDA
    graph uses memory that was freed: when it is replayed, that memory is gone.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> mr = rmm_uvm.managed_pool(
    ...     driver="simulated:64MiB", initial_pool_size="32MiB", maximum_pool_size="256MiB"
    ... )
    >>> table = rmm.DeviceBuffer(size=40 << 20, mr=mr)
    >>> print(rmm_uvm.trim(mr))
    32.00 MiB given back, and 84.00 MiB discarded beside what is in use
    """
    pools = managed_pools(mr)
    return trim_pools(pools) if pools else Trimmed(0, 0, "RMM_UVM=off")


def trim_when_idle(seconds: float | None = 60.0) -> None:
    """Trim the installed pools whenever nothing was allocated or freed for some time.

    For notebooks and workers that stay after their work: other processes get the memory. See
    `trim` for what it does, and where it must not be used.

    Parameters
    ----------
    seconds : float or None
        So long nothing has to happen, at least 0.05; None ends it. Whoever calls again changes the
        time.

    Raises
    ------
    ConfigurationError
        If `seconds` is no such time.
    AvailabilityError
        If its thread cannot be started. Then none is there.

    Notes
    -----
    Thread-safe. A thread of ours looks eight times as often at how much is in use. It needs no
    pool to be installed yet, and a pool that is idle is trimmed once. Not in a child of a fork.

    Examples
    --------
    >>> import rmm_uvm
    >>> rmm_uvm.trim_when_idle(30)
    >>> rmm_uvm.trim_when_idle(None)
    """
    global _trimmer
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (is_time and _LEAST_SECONDS <= seconds < 1e9):
        raise ConfigurationError(
            f"seconds={shown(seconds)}: give a time of {_LEAST_SECONDS} s or more, or None to end "
            "it"
        )
    with _changing():
        if _trimmer is not None:
            _trimmer.stop()
        _trimmer = None
        if seconds is not None:
            begun = _IdleTrimmer(seconds)
            begun.start()
            _trimmer = begun


class _IdleWatch:
    """Says once that nothing changed for some looks in turn."""

    def __init__(self, looks: int) -> None:
        self._looks = looks
        self._levels: object = None
        self._same = 0

    def look(self, levels: object) -> bool:
        """Return whether this is the look at which all have been the same for long enough."""
        self._same = self._same + 1 if levels == self._levels else 0
        self._levels = levels
        return self._same == self._looks

    def settle(self, levels: object) -> None:
        """Take what was just done for no change."""
        self._levels = levels

    def begin_anew(self) -> None:
        """Count looks from here on."""
        self._same = 0


class _IdleTrimmer:
    """The thread that trims installed pools while nothing happens."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pid = os.getpid()
        self._watch = _IdleWatch(_LOOKS)
        self._stopping = threading.Event()
        self._thread = OwnThread(target=self._work, name="rmm_uvm trimmer", daemon=True)

    def start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            raise AvailabilityError(f"pools cannot be trimmed by themselves: {error}") from error
        atexit.register(self.stop)

    def stop(self) -> None:
        if os.getpid() != self._pid:  # in a child of a fork there is no thread
            return
        atexit.unregister(self.stop)
        self._stopping.set()
        self._thread.join()

    def _work(self) -> None:
        told: set[str] = set()
        while not self._stopping.wait(self._seconds / _LOOKS):
            try:
                reason = self._look()
            except AvailabilityError:  # restored in between
                continue
            if reason and reason not in told:
                told.add(reason)
                logging.getLogger("rmm_uvm").info("idle pools were not trimmed: %s", reason)

    def _look(self) -> str:
        """Look once; return why not all that could go went."""
        before = _levels_of_installed()
        if not self._watch.look(before):
            return ""
        trimmed = trim()
        after = _levels_of_installed()
        went_bytes = sum(each.slab_bytes for each in before) - sum(
            each.slab_bytes for each in after
        )
        used = [each._replace(slab_bytes=0) for each in before] != [
            each._replace(slab_bytes=0) for each in after
        ]
        if trimmed.reason not in ("", RMM_KEEPS) or used or went_bytes != trimmed.given_back_bytes:
            self._watch.begin_anew()
        self._watch.settle(after)
        return trimmed.reason


class _Levels(NamedTuple):
    """Levels that tell whether a pool was used: they differ after nearly every use."""

    pool: int
    allocated_bytes: int
    peak_bytes: int
    slab_bytes: int


def _levels_of_installed() -> tuple[_Levels, ...]:
    try:
        pools = managed_pools()
    except AvailabilityError:
        return ()
    return tuple(
        _Levels(id(pool), pool.get_allocated_bytes(), pool.peak_bytes, pool.managed_mr.slab_bytes)
        for pool in pools
    )


_changing = ProcessLock()
_trimmer: _IdleTrimmer | None = None

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a pool holds and nobody uses is given back: to the device, the host and other processes.

Covers asking pools of `rmm_uvm.managed_pool` and `rmm_uvm.reinitialize` for it. Does not cover
torch's own allocator; see `rmm_uvm.torch`.
"""

from __future__ import annotations

import atexit
import logging
import threading

import rmm

from rmm_uvm._lib.own_threads import OwnThread
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.pool.slabs import Trimmed, trim_pools
from rmm_uvm.support.messages import shown

__all__ = ["Trimmed", "trim", "trim_when_idle"]

_LOOKS = 8  # in which nothing changed: then a pool is idle


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
    Waits for the work that used the memory last, and has nobody else allocate past the pool's
    maximum meanwhile. Thread-safe. The pool takes new memory when it needs it again, some of it at
    a time. A slab that is as large as the pool's maximum stays, as do slabs of a pool that you
    built from RMM's own classes: what is dead in them is discarded.

    While a stream captures nothing is done. Do not call it where a CUDA graph uses memory that was
    freed: when it is replayed, that memory is gone.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="32MiB")
    >>> table = rmm.DeviceBuffer(size=40 << 20, mr=mr)
    >>> mr.managed_mr.slab_bytes >> 20
    80
    >>> print(rmm_uvm.trim(mr))
    32.00 MiB given back, and 6.00 MiB discarded beside what is in use
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
        So long nothing has to happen, > 0; None ends it. Whoever calls again changes the time.

    Raises
    ------
    ConfigurationError
        If `seconds` is no positive number.
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
    if seconds is not None and not (isinstance(seconds, int | float) and 0 < seconds < 1e9):
        raise ConfigurationError(f"seconds={shown(seconds)}: give a time > 0, or None to end it")
    with _changing:
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


class _IdleTrimmer:
    """The thread that trims installed pools while nothing happens."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
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
        atexit.unregister(self.stop)
        self._stopping.set()
        if self._thread.is_alive():  # in a child of a fork it is not
            self._thread.join()

    def _work(self) -> None:
        while not self._stopping.wait(self._seconds / _LOOKS):
            try:
                if self._watch.look(_levels_of_installed()):
                    trim()
                    self._watch.settle(_levels_of_installed())
            except AvailabilityError:  # restored in between
                continue
            except Exception:
                logging.getLogger("rmm_uvm").warning("trimming idle pools failed", exc_info=True)
                return


def _levels_of_installed() -> tuple[tuple[int, int, int, int], ...]:
    """Return what tells whether pools were used: it differs after nearly every use."""
    try:
        pools = managed_pools()
    except AvailabilityError:
        return ()
    return tuple(
        (id(pool), pool.get_allocated_bytes(), pool.peak_bytes, pool.managed_mr.slab_bytes)
        for pool in pools
    )


_changing = threading.Lock()
_trimmer: _IdleTrimmer | None = None

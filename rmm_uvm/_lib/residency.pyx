# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ledger, epochs and prefetching (`cpp/include/rmm_uvm/residency`)."""

from cython.operator cimport dereference
from libcpp.memory cimport make_shared
from libcpp.utility cimport move

from rmm_uvm._lib.driver cimport UvmDriver, status_text

_MODES = {
    "auto": prefetch_mode.automatic,
    "always": prefetch_mode.always,
    "never": prefetch_mode.never,
}

cdef size_t _UNLIMITED = <size_t>-1


cdef prefetch_mode as_mode(name) except *:
    if name not in _MODES:
        raise ValueError(f"prefetch must be 'auto', 'always' or 'never', not {name!r}")
    return _MODES[name]


cdef class ManagedAccount:
    """A hard cap on managed bytes, shared by the resources that are given it. Thread-safe.

    Parameters
    ----------
    limit_bytes : int or None
        The cap, bytes; None for no cap.
    """

    def __init__(self, limit_bytes=None):
        self.handle = make_shared[managed_account](
            _UNLIMITED if limit_bytes is None else <size_t>limit_bytes
        )

    @property
    def limit_bytes(self):
        """The cap, bytes; None for no cap. May be set; memory above a lowered cap stays."""
        limit = dereference(self.handle).limit_bytes()
        return None if limit == _UNLIMITED else limit

    @limit_bytes.setter
    def limit_bytes(self, value):
        dereference(self.handle).set_limit_bytes(_UNLIMITED if value is None else <size_t>value)

    @property
    def used_bytes(self):
        """Managed bytes taken now."""
        return dereference(self.handle).used_bytes()


cdef class Prefetcher:
    """What one managed memory resource and the adaptors above it share. Thread-safe."""

    def __init__(self, UvmDriver driver not None):
        self.driver = driver
        self.handle = make_shared[prefetcher](
            driver.handle, move(make_epoch_source(dereference(driver.handle)))
        )

    @property
    def epoch(self):
        """Number of the epoch now: it ends when bytes were seen to leave the device."""
        return dereference(self.handle).current_epoch()

    @property
    def slab_bytes(self):
        """Managed bytes taken from the driver and not given back."""
        return dereference(self.handle).ledger().slab_bytes()

    def statistics(self):
        """What was prefetched, discarded and skipped, and why.

        Returns
        -------
        dict
            ``slab_prefetched_bytes``, ``prefetch_calls``, ``prefetched_bytes``, ``discard_calls``,
            ``discarded_bytes``, ``failed_calls`` (int), ``last_failure`` (str, "" when none) and
            ``skipped`` (dict of reason to count).
        """
        cdef prefetch_statistics s = dereference(self.handle).statistics()
        cdef size_t index
        failure = ""
        if not s.last_failure.ok():
            failure = f"{s.last_failure.call.decode()}: {status_text(s.last_failure.code).decode()}"
        return {
            "slab_prefetched_bytes": s.slab_prefetched_bytes,
            "prefetch_calls": s.prefetch_calls,
            "prefetched_bytes": s.prefetched_bytes,
            "discard_calls": s.discard_calls,
            "discarded_bytes": s.discarded_bytes,
            "failed_calls": s.failed_calls,
            "last_failure": failure,
            "skipped": {
                reason_text(<skip_reason>index).decode(): s.skipped[index]
                for index in range(skip_reason_count)
            },
        }

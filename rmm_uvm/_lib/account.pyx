# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The cap on managed bytes (`cpp/include/rmm_uvm/residency/managed_account.hpp`)."""

from cython.operator cimport dereference
from libcpp.memory cimport make_shared

cdef size_t _UNLIMITED = <size_t>-1


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

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libcpp.memory cimport shared_ptr


cdef extern from "rmm_uvm/residency/managed_account.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass managed_account:
        managed_account(size_t) except +
        void set_limit_bytes(size_t) noexcept
        size_t limit_bytes() noexcept
        size_t used_bytes() noexcept


cdef class ManagedAccount:
    cdef shared_ptr[managed_account] handle

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp.memory cimport shared_ptr, unique_ptr

from rmm_uvm._lib.driver cimport UvmDriver, memory_range, status, uvm_driver


cdef extern from "rmm_uvm/residency/managed_account.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass managed_account:
        managed_account(size_t) except +
        void set_limit_bytes(size_t) noexcept
        size_t limit_bytes() noexcept
        size_t used_bytes() noexcept

cdef extern from "rmm_uvm/residency/epoch_source.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass epoch_source:
        pass
    unique_ptr[epoch_source] make_epoch_source(uvm_driver&) except +

cdef extern from "rmm_uvm/residency/prefetch_policy.hpp" namespace "rmm_uvm" nogil:
    cpdef enum class prefetch_mode(uint8_t):
        automatic
        always
        never

cdef extern from "rmm_uvm/residency/prefetch_statistics.hpp" namespace "rmm_uvm" nogil:
    enum: skip_reason_count "rmm_uvm::skip_reason_count"
    cdef enum class skip_reason(uint8_t):
        resident
    const char* reason_text "rmm_uvm::to_string"(skip_reason) noexcept

    cdef cppclass skip_counts "std::array<std::uint64_t, rmm_uvm::skip_reason_count>":
        uint64_t& operator[](size_t) noexcept

    cdef cppclass prefetch_statistics:
        uint64_t slab_prefetched_bytes
        uint64_t prefetch_calls
        uint64_t prefetched_bytes
        uint64_t discard_calls
        uint64_t discarded_bytes
        uint64_t failed_calls
        status last_failure
        skip_counts skipped

cdef extern from "rmm_uvm/residency/ledger.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass residency_ledger:
        size_t slab_bytes() except +

cdef extern from "rmm_uvm/residency/prefetcher.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass prefetcher:
        prefetcher(shared_ptr[uvm_driver], unique_ptr[epoch_source]) except +
        prefetch_statistics statistics() noexcept
        const residency_ledger& ledger() noexcept
        uint32_t current_epoch() noexcept


cdef prefetch_mode as_mode(name) except *


cdef class ManagedAccount:
    cdef shared_ptr[managed_account] handle


cdef class Prefetcher:
    cdef shared_ptr[prefetcher] handle
    cdef readonly UvmDriver driver

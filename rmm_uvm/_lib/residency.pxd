# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.optional cimport optional
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.vector cimport vector

from rmm_uvm._lib.harvest cimport budget_sharing, neighbor_lender
from rmm_uvm._lib.driver cimport (
    UvmDriver,
    device_info,
    link_rates,
    location,
    memory_range,
    observer_slot,
    status,
    uvm_driver,
)


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
        uint64_t undiscarded_bytes
        uint64_t failed_calls
        status last_failure
        skip_counts skipped

cdef extern from "rmm_uvm/residency/ledger.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass residency_ledger:
        size_t slab_bytes() except +

cdef extern from "rmm_uvm/residency/memory_adviser.hpp" namespace "rmm_uvm" nogil:
    cdef enum class preferred_place(uint8_t):
        none
        device
        host

    cdef cppclass advice_change:
        optional[bool] read_mostly
        optional[preferred_place] preferred

    cdef cppclass advice_outcome:
        size_t whole_bytes
        size_t advised_bytes
        status failure

cdef extern from "rmm_uvm/residency/eviction_policy.hpp" namespace "rmm_uvm" nogil:
    cpdef enum class eviction_policy(uint8_t):
        fifo
        lru
        repeat
        correlation

cdef extern from "rmm_uvm/residency/neighbor_places.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass neighbor:
        int device_id
        size_t limit_bytes

cdef extern from "rmm_uvm/residency/residency_settings.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass residency_settings:
        size_t budget_bytes
        size_t low_bytes
        size_t followed_bytes
        shared_ptr[budget_sharing] sharing
        bool direct
        size_t piece_bytes
        size_t fetch_bytes
        size_t ahead_bytes
        bool ahead_adapts
        eviction_policy policy
        vector[neighbor] neighbors
        shared_ptr[neighbor_lender] lender
        bool lends
        bool in_place
        bool copy_beside
        bool multipath
        bool keep_copies
        link_rates rates
        bool discard_dead
        bool rank_dead
        bool fetch
        bool ahead
        bool background

cdef extern from "rmm_uvm/residency/use_predictor.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass prediction_score:
        uint64_t predicted
        uint64_t seen
        double hit_rate() noexcept

cdef extern from "rmm_uvm/residency/residency_statistics.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass residency_statistics:
        eviction_policy policy
        size_t budget_bytes
        uint64_t budget_changes
        size_t unmanaged_bytes
        bool unmanaged_told
        size_t hidden_bytes
        size_t sharers
        size_t resident_bytes
        size_t peak_resident_bytes
        size_t pinned_bytes
        size_t overshoot_bytes
        size_t peak_overshoot_bytes
        uint64_t faulted_bytes
        uint64_t found_bytes
        uint64_t looks
        uint64_t evicted_bytes
        uint64_t uncopied_bytes
        size_t kept_copy_bytes
        uint64_t copied_early_bytes
        uint64_t dropped_bytes
        uint64_t fetched_bytes
        uint64_t renewed_bytes
        uint64_t undiscarded_bytes
        uint64_t undiscarded_copied_bytes
        uint64_t fetched_ahead_bytes
        uint64_t ahead_used_bytes
        size_t ahead_bytes
        uint64_t wanted_bytes
        uint64_t present_bytes
        uint64_t neighbor_bytes
        size_t harvested_bytes
        size_t peak_harvested_bytes
        uint64_t from_neighbor_bytes
        uint64_t in_place_bytes
        uint64_t copied_beside_bytes
        uint64_t staged_bytes
        uint64_t given_back_bytes
        uint64_t given_back_at_once_bytes
        uint64_t held_back
        uint64_t reclaims
        uint64_t reclaim_wait_ns
        uint64_t eviction_calls
        uint64_t waits
        uint64_t over_budget
        uint64_t too_large
        size_t too_large_bytes
        uint64_t waited_ns
        uint64_t waited_for_room_ns
        uint64_t host_read_bytes
        uint64_t unfenced_frees
        uint64_t failed_calls
        status last_failure
        prediction_score prediction
        bool foresees
        uint64_t switched_off

cdef extern from "rmm_uvm/residency/use_predictor.hpp" namespace "rmm_uvm" nogil:
    cdef enum class use_kind(uint8_t):
        touch

    cdef struct use_event:
        use_kind kind
        memory_range range
        uintptr_t owner
        bool only_read

cdef extern from "rmm_uvm/residency/live_blocks.hpp" namespace "rmm_uvm" nogil:
    cdef struct live_blocks:
        size_t now
        size_t peak

cdef extern from "rmm_uvm/residency/pool_room.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass pool_room:
        void set_maximum(size_t, size_t) noexcept

cdef extern from "rmm_uvm/residency/managed_residency.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass managed_residency:
        managed_residency(shared_ptr[uvm_driver], unique_ptr[epoch_source]) except +
        pool_room& room() noexcept
        void start_budget(const residency_settings&) except +
        bint change_budget(size_t, size_t) noexcept
        void end_budget() noexcept
        size_t budget_bytes() noexcept
        prefetch_statistics statistics() noexcept
        optional[residency_statistics] budget_statistics() noexcept
        bint holds(uintptr_t) except +
        const residency_ledger& ledger() noexcept
        uint64_t current_epoch() noexcept
        void on_touch(const vector[use_event]&, void*) noexcept
        void on_made(const vector[memory_range]&) noexcept
        bint all_present() noexcept
        observer_slot& use_observers() noexcept
        bint confirm_present(void*) noexcept
        bint confirmed_present() noexcept
        void bring(memory_range, void*) noexcept
        size_t evict(memory_range, void*) noexcept
        size_t sleep() noexcept
        size_t wake(void*) noexcept
        advice_outcome advise(memory_range, advice_change) noexcept
        size_t advised_bytes() noexcept
        void pin(memory_range) noexcept
        void unpin(memory_range) noexcept
        void run_pending() noexcept
        bool run_pending_piece() noexcept
        void flush() noexcept
        live_blocks take_live_blocks(bint) noexcept


cdef prefetch_mode as_mode(name) except *


cdef class ManagedResidency:
    cdef object __weakref__
    cdef shared_ptr[managed_residency] handle
    cdef object _changing
    cdef readonly object budget
    cdef readonly UvmDriver driver
    cdef public bint too_large_told
    cdef readonly tuple neighbors
    cdef readonly list refused_neighbors
    cdef readonly object board
    cdef readonly str board_reason
    cdef readonly str links_reason

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint64_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport memory_range
from rmm_uvm._lib.residency cimport prefetch_mode
from rmm_uvm._lib.sim cimport simulated_device, simulated_statistics


cdef extern from "<span>" namespace "std" nogil:
    cdef cppclass slab_span "std::span<rmm_uvm::memory_range const>":
        slab_span(const memory_range*, size_t)

    cdef cppclass event_span "std::span<rmm_uvm::replay::replay_event const>":
        event_span(const replay_event*, size_t)

cdef extern from "<optional>" namespace "std" nogil:
    cdef cppclass optional_record "std::optional<rmm_uvm::replay::out_of_memory_record>":
        bool has_value() noexcept
        out_of_memory_record& value()

cdef extern from "rmm_uvm/replay/replay_event.hpp" namespace "rmm_uvm::replay" nogil:
    cdef cppclass replay_event:
        pass

cdef extern from "rmm_uvm/replay/timeline.hpp" namespace "rmm_uvm::replay" nogil:
    cdef cppclass timeline_point:
        pass

cdef extern from "rmm_uvm/replay/replayer.hpp" namespace "rmm_uvm::replay" nogil:
    cdef cppclass replay_settings:
        prefetch_mode mode
        bool discard_dead
        size_t stage_count
        uint64_t last_time_ns

    cdef struct stage_totals:
        double migration_ns
        uint64_t to_device_bytes
        uint64_t to_host_bytes
        uint64_t evicted_bytes
        uint64_t peak_live_bytes

    cdef struct out_of_memory_record:
        uint64_t record
        uint16_t stage
        uint64_t bytes

    cdef cppclass replayer:
        replayer(shared_ptr[simulated_device], slab_span, const replay_settings&) except +
        void feed(event_span) except +
        void finish() except +
        uint64_t replayed() noexcept
        optional_record out_of_memory() noexcept
        const vector[stage_totals]& stages() noexcept
        const vector[timeline_point]& points() noexcept
        size_t peak_live_bytes() noexcept
        simulated_statistics statistics() noexcept


cdef class Replayer:
    cdef unique_ptr[replayer] handle

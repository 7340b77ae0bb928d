# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.optional cimport optional
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport (
    availability,
    device_memory_reader,
    memory_level_source,
    uvm_driver,
)


cdef extern from "rmm_uvm/monitor/clock.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass clock_t "rmm_uvm::monitor::clock":
        uint64_t now_ns() noexcept

cdef extern from "rmm_uvm/monitor/fake_clock.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass fake_clock(clock_t):
        void advance(uint64_t) noexcept

cdef extern from "rmm_uvm/monitor/sample.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass sample:
        pass

cdef extern from "rmm_uvm/monitor/sample_ring.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass ring_read:
        uint64_t first_sequence
        size_t count

cdef extern from "rmm_uvm/monitor/slot.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass slot_settings:
        int device_id
        shared_ptr[uvm_driver] driver
        shared_ptr[device_memory_reader] memory
        size_t capacity_bytes
        double full_fraction
        bool faults

cdef extern from "rmm_uvm/monitor/sampler.hpp" namespace "rmm_uvm::monitor" nogil:
    cdef cppclass sampler_settings:
        uint64_t interval_ns
        size_t capacity

    cdef cppclass sampler:
        sampler(vector[slot_settings], sampler_settings, shared_ptr[clock_t]) except +
        void start() except +
        void stop() noexcept
        bool running() noexcept
        bool sample_now() noexcept
        bool set_levels(int, shared_ptr[memory_level_source]) noexcept
        bool set_external(int, optional[uint64_t], optional[uint64_t]) noexcept
        availability faults(int) except +
        size_t count(uint64_t) noexcept
        uint64_t next_sequence() noexcept
        uint64_t cost_ns() noexcept

cdef extern from *:
    """
    #include <rmm_uvm/monitor/sampler.hpp>
    #include <chrono>
    #include <cstddef>
    #include <cstdint>
    // Spans and durations do not cross into Cython.
    inline rmm_uvm::monitor::ring_read rmm_uvm_read_samples(
      rmm_uvm::monitor::sampler const& from, std::uint64_t since, void* into, std::size_t count) noexcept {
      return from.read(since, {static_cast<rmm_uvm::monitor::sample*>(into), count});
    }
    inline bool rmm_uvm_wait_sample(rmm_uvm::monitor::sampler const& on, std::uint64_t sequence,
                                    std::int64_t timeout_ns) noexcept {
      return on.wait(sequence, std::chrono::nanoseconds{timeout_ns});
    }
    """
    ring_read read_samples "rmm_uvm_read_samples"(sampler&, uint64_t, void*, size_t) noexcept nogil
    bool wait_sample "rmm_uvm_wait_sample"(sampler&, uint64_t, int64_t) noexcept nogil

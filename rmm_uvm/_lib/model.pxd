# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport memory_range, status
from rmm_uvm._lib.sim cimport driver_settings, machine_profile, third_tier


cdef extern from "<vector>" namespace "std" nogil:
    # Constant, as patterns hold it: a list that several accesses may share.
    cdef cppclass page_list "std::vector<std::uint64_t> const":
        pass


cdef extern from "<span>" namespace "std" nogil:
    cdef cppclass access_span "std::span<rmm_uvm::sim::kernel_access const>":
        access_span()
        access_span(const kernel_access*, size_t)


cdef extern from "rmm_uvm/sim/access_pattern.hpp" namespace "rmm_uvm::sim" nogil:
    cdef enum class pattern_kind(uint8_t):
        sequential
        strided
        random
        zipf
        pointer_chase
        hash_join_probe
        recorded

    cdef cppclass access_pattern:
        access_pattern()
        pattern_kind kind
        uint64_t count
        uint64_t stride_pages
        double exponent
        uint64_t seed
        shared_ptr[page_list] pages


cdef extern from "rmm_uvm/sim/uvm_model.hpp" namespace "rmm_uvm::sim" nogil:
    cdef enum class advice(uint8_t):
        read_mostly
        unset_read_mostly
        preferred_location
        unset_preferred_location
        accessed_by
        unset_accessed_by

    cdef struct model_counters:
        uint64_t to_device_bytes
        uint64_t to_host_bytes
        uint64_t peer_bytes
        uint64_t remote_bytes
        uint64_t evicted_bytes
        uint64_t evicted_blocks
        uint64_t dropped_bytes
        uint64_t filled_bytes
        uint64_t gpu_faults
        uint64_t fault_services
        uint64_t fault_batches
        uint64_t cpu_faults
        uint64_t block_operations
        size_t managed_bytes
        size_t device_bytes
        size_t resident_bytes
        size_t peak_resident_bytes
        size_t host_page_bytes
        uint64_t to_third_tier_bytes
        uint64_t from_third_tier_bytes
        size_t third_tier_bytes

    cdef cppclass model_config:
        model_config()
        machine_profile machine
        driver_settings driver
        third_tier behind_host
        size_t device_bytes
        size_t host_bytes
        unsigned gpus
        vector[unsigned] links
        bool peers

    cdef cppclass kernel_access:
        kernel_access()
        memory_range range
        access_pattern pattern
        bool write

    cdef cppclass kernel_launch:
        kernel_launch()
        access_span accesses
        double compute_ns
        unsigned gpu
        uint64_t stream
        uint32_t outstanding_faults
        bool (*shall_stop)(void*) noexcept nogil
        void* asker

    cdef cppclass uvm_model:
        uvm_model(const model_config&) except +
        void add_range(memory_range) except +
        bool remove_range(uintptr_t) noexcept
        status allocate_device(unsigned, size_t) except +
        void free_device(unsigned, size_t) noexcept
        status prefetch(memory_range, int, uint64_t) except +
        status discard(memory_range, bool) except +
        status discard_and_prefetch(memory_range, int, uint64_t) except +
        status advise(memory_range, advice, int) except +
        status launch(const kernel_launch&) except +
        status cpu_touch(memory_range, bool) except +
        void host_work(double) noexcept
        void synchronize(uint64_t) noexcept
        void synchronize_all "synchronize"() noexcept
        double now_ns() noexcept
        const model_counters& counters() noexcept
        size_t free_bytes(unsigned) noexcept
        size_t resident_bytes(memory_range, int) noexcept
        size_t footprint_bytes() noexcept


cdef class UvmModel:
    cdef unique_ptr[uvm_model] model
    cdef unsigned gpus
    cdef object guard

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string

from rmm_uvm._lib.driver cimport (
    UvmDriver,
    capture_state,
    memory_observer,
    observer_slot,
    memory_range,
    status,
    stream_handle,
    uvm_driver,
)


cdef extern from "rmm_uvm/sim/simulated_device.hpp" namespace "rmm_uvm::sim" nogil:
    cdef cppclass simulated_device_config:
        size_t capacity_bytes
        size_t host_bytes
        bool backing
        bool concurrent_managed_access
        bool discard
        bool counters
        int device_id

    cdef struct simulated_statistics:
        uint64_t host_to_device_bytes
        uint64_t device_to_host_bytes
        uint64_t evicted_bytes
        uint64_t dropped_bytes
        uint64_t gpu_fault_groups
        uint64_t cpu_faults
        uint64_t modelled_ns
        size_t managed_bytes
        size_t device_bytes
        size_t resident_bytes
        size_t peak_resident_bytes
        size_t host_page_bytes

    cdef cppclass simulated_device(uvm_driver):
        simulated_device(const simulated_device_config&) except +
        status touch(memory_range, bool) noexcept
        status cpu_touch(memory_range, bool) noexcept
        void observe(shared_ptr[memory_observer]) except +
        observer_slot& observers() noexcept
        simulated_statistics statistics() noexcept
        bool backing() noexcept
        size_t resident_bytes(memory_range) noexcept
        void fail_call(string, status, unsigned) except +
        void set_capture_state(stream_handle, capture_state) except +


cdef class SimulatedDevice(UvmDriver):
    cdef shared_ptr[simulated_device] model

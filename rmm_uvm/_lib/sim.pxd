# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport (
    UvmDriver,
    capture_state,
    location,
    memory_observer,
    observer_slot,
    memory_range,
    neighbor_load,
    status,
    stream_handle,
    uvm_driver,
)


cdef extern from "rmm_uvm/sim/machine_profile.hpp" namespace "rmm_uvm::sim" nogil:
    cdef struct machine_profile:
        size_t device_bytes
        double memory_bytes_per_ns
        double to_device_bytes_per_ns
        double to_host_bytes_per_ns
        double copy_ns
        double duplex_fraction
        double remote_bytes_per_ns
        double peer_bytes_per_ns
        double peer_remote_bytes_per_ns
        double call_ns
        double deferred_call_ns
        double block_to_device_ns
        double block_to_host_ns
        double discarded_to_host_ns
        double host_page_ns
        double resident_block_ns
        double populate_block_ns
        double refill_block_ns
        double discard_block_ns
        double discarded_block_ns
        double prefetch_ramp_ns
        double prefetch_ramp_blocks
        double batch_ns
        double fault_ns
        double fault_block_ns
        double unmap_ns
        double duplicate_fraction
        uint32_t outstanding_faults
        uint32_t batch_faults
        double discarded_fault_ns
        double cpu_fault_ns
        double allocate_managed_ns
        double free_managed_ns
        double allocate_device_ns
        double free_device_ns
        double launch_ns

cdef extern from "rmm_uvm/sim/third_tier.hpp" namespace "rmm_uvm::sim" nogil:
    cdef struct third_tier:
        size_t capacity_bytes
        double read_bytes_per_ns
        double write_bytes_per_ns
        double operation_ns


cdef extern from "rmm_uvm/sim/driver_settings.hpp" namespace "rmm_uvm::sim" nogil:
    cdef struct driver_settings:
        bool prefetch
        uint32_t prefetch_threshold
        uint32_t min_faults
        bool two_passes
        bool evict_pages


cdef extern from "rmm_uvm/sim/timeline.hpp" namespace "rmm_uvm::sim" nogil:
    cdef enum class direction(uint8_t):
        to_device
        to_host

    cdef cppclass link_traffic:
        uint64_t bytes
        double busy_ns


cdef extern from "rmm_uvm/sim/simulated_node.hpp" namespace "rmm_uvm::sim" nogil:
    cdef enum class node_topology(uint8_t):
        nvswitch
        pairs
        pcie

    cdef cppclass simulated_node_config:
        unsigned gpus
        node_topology topology
        vector[unsigned] links
        size_t capacity_bytes
        size_t host_bytes
        bool kernel_time
        machine_profile machine
        driver_settings driver
        third_tier behind_host

    cdef cppclass simulated_node:
        simulated_node(const simulated_node_config&) except +
        status occupy(unsigned, size_t) noexcept
        double synchronize() noexcept
        link_traffic host_traffic(unsigned, direction) noexcept
        link_traffic peer_traffic(unsigned, unsigned) noexcept


cdef extern from "rmm_uvm/sim/planned_answers.hpp" namespace "rmm_uvm::sim" nogil:
    cdef cppclass planned_answers:
        void plan(string, status, unsigned) except +
        size_t cancel() noexcept
        void set_capture_state(stream_handle, capture_state) except +
        void end_graphs() noexcept


cdef extern from "rmm_uvm/sim/simulated_program.hpp" namespace "rmm_uvm::sim" nogil:
    cdef cppclass simulated_program:
        status touch(memory_range, bool) noexcept
        status cpu_touch(memory_range, bool) noexcept
        status compute(double) noexcept
        void migrate_beside(bool) noexcept
        void observe(shared_ptr[memory_observer]) except +
        observer_slot& observers() noexcept


cdef extern from "rmm_uvm/sim/simulated_neighbors.hpp" namespace "rmm_uvm::sim" nogil:
    cdef cppclass simulated_neighbors:
        status occupy(int, size_t) noexcept
        status set_load(int, const neighbor_load&) noexcept


cdef extern from "rmm_uvm/sim/simulated_view.hpp" namespace "rmm_uvm::sim" nogil:
    cdef cppclass block_policy:
        signed char preferred
        bool read_mostly

    cdef struct simulated_statistics:
        uint64_t host_to_device_bytes
        uint64_t device_to_host_bytes
        uint64_t evicted_bytes
        uint64_t evicted_blocks
        uint64_t dropped_bytes
        uint64_t gpu_fault_groups
        uint64_t gpu_faults
        uint64_t cpu_faults
        uint64_t modelled_ns
        size_t managed_bytes
        size_t device_bytes
        size_t resident_bytes
        size_t peak_resident_bytes
        size_t host_page_bytes
        size_t neighbor_bytes
        size_t lent_bytes
        uint64_t to_third_tier_bytes
        uint64_t from_third_tier_bytes
        size_t third_tier_bytes

    cdef cppclass simulated_view:
        unsigned gpu() noexcept
        simulated_statistics statistics() noexcept
        size_t resident_bytes(memory_range, location) noexcept
        block_policy advised(uintptr_t) noexcept
        bool backing() noexcept


cdef extern from "rmm_uvm/sim/simulated_device.hpp" namespace "rmm_uvm::sim" nogil:
    cdef cppclass simulated_device_config:
        size_t capacity_bytes
        size_t host_bytes
        bool backing
        bool concurrent_managed_access
        bool discard
        bool counters
        bool tells_moves
        bool direct_migration
        bool integrated
        optional[int] numa_node
        bool places_at_once
        int device_id
        unsigned neighbors
        machine_profile machine
        driver_settings driver
        third_tier behind_host

    cdef cppclass simulated_device(uvm_driver):
        simulated_device(const simulated_device_config&) except +
        simulated_device(shared_ptr[simulated_node], unsigned, const simulated_device_config&) except +
        simulated_program& program() noexcept
        simulated_neighbors& neighbors() noexcept
        const simulated_view& view() noexcept
        planned_answers& answers() noexcept


cdef class SimulatedDevice(UvmDriver):
    cdef shared_ptr[simulated_device] model


cdef class NodeModel:
    cdef shared_ptr[simulated_node] node
    cdef readonly tuple devices

    cdef SimulatedDevice _device(self, unsigned, const simulated_device_config&)

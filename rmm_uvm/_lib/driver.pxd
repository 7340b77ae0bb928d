# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.optional cimport optional
from libcpp.string cimport string


cdef extern from "rmm_uvm/driver/availability.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass availability:
        bool available
        string reason

cdef extern from "rmm_uvm/driver/status.hpp" namespace "rmm_uvm" nogil:
    cpdef enum class status_code(uint8_t):
        success
        out_of_memory
        invalid_value
        not_supported
        driver_error

    cdef cppclass status:
        status_code code
        int native_error
        const char* call
        bool ok() noexcept

    const char* status_text "rmm_uvm::to_string"(status_code) noexcept

cdef extern from "rmm_uvm/driver/memory.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass memory_range:
        uintptr_t address
        size_t bytes

    cdef cppclass device_memory:
        size_t free_bytes
        size_t total_bytes

    cdef cppclass location:
        int device_id

cdef extern from "rmm_uvm/driver/stream.hpp" namespace "rmm_uvm" nogil:
    ctypedef void* stream_handle
    cpdef enum class capture_state(uint8_t):
        none
        capturing
        implied
        unknown

cdef extern from "<array>" nogil:
    cdef cppclass uuid_bytes "std::array<std::uint8_t, 16>":
        uint8_t* data() noexcept

cdef extern from "rmm_uvm/driver/migration_counters.hpp" namespace "rmm_uvm" nogil:
    cdef struct migration_totals:
        uint64_t host_to_device_bytes
        uint64_t device_to_host_bytes
        uint64_t cpu_faults
        uint64_t gpu_faults

    cdef cppclass migration_counters:
        availability available() except +
        migration_totals read() noexcept
        availability request_faults() except +
        void release_faults() noexcept

cdef extern from "rmm_uvm/driver/command_totals.hpp" namespace "rmm_uvm" nogil:
    cdef struct command_totals:
        uint64_t prefetched_to_device_bytes
        uint64_t prefetched_to_host_bytes
        uint64_t discarded_bytes

cdef extern from "rmm_uvm/driver/link_rates.hpp" namespace "rmm_uvm" nogil:
    cdef struct link_rates:
        uint64_t to_device_bytes_per_second
        uint64_t to_host_bytes_per_second
        uint64_t from_neighbor_bytes_per_second
        uint64_t to_neighbor_bytes_per_second

cdef extern from "rmm_uvm/driver/neighbor_load.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass neighbor_load:
        optional[double] kernel_fraction
        optional[double] memory_fraction
        optional[double] link_fraction

cdef extern from "rmm_uvm/driver/memory_observer.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass memory_observer:
        pass

cdef extern from "rmm_uvm/driver/observer_slot.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass observer_slot:
        memory_observer* get() noexcept
        bool taken() noexcept
        bool attach(shared_ptr[memory_observer]) except +
        void detach(const memory_observer*) noexcept
        void set_account(shared_ptr[memory_observer]) except +
        void end_account(const memory_observer*) noexcept

cdef extern from "rmm_uvm/driver/move_queue.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass move_queue:
        pass

    cdef cppclass opened_move_queue:
        unique_ptr[move_queue] queue
        availability opened

cdef extern from "rmm_uvm/driver/uvm_driver.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass device_info:
        int device_id
        string name
        uuid_bytes uuid
        size_t total_bytes
        int driver_version
        availability concurrent_managed_access
        availability discard
        availability direct_migration
        availability host_pages
        bool pageable_memory_access
        bool host_page_tables
        bool integrated
        optional[int] numa_node
        bool simulated

    cdef cppclass uvm_driver:
        const device_info& info() noexcept
        const migration_counters& counters() noexcept
        opened_move_queue open_moves() except +
        bool tells_moves() noexcept
        status memory(device_memory&) noexcept
        int device_count() noexcept
        availability open_neighbor(int) except +
        status neighbor_uuid(int, uuid_bytes&) noexcept
        status neighbor_memory(int, device_memory&) noexcept
        status read_neighbor_load(int, neighbor_load&) noexcept
        status prefetch(memory_range, location, stream_handle) noexcept
        status migrate(memory_range, location) noexcept
        status synchronize(stream_handle) noexcept
        capture_state capturing(stream_handle) noexcept
        command_totals commands() noexcept
        observer_slot& traffic_observers() noexcept

cdef extern from "rmm_uvm/driver/device_memory_reader.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass device_memory_reader:
        bool read(device_memory&) noexcept

    cdef cppclass driver_memory_reader(device_memory_reader):
        driver_memory_reader(shared_ptr[uvm_driver]) except +

cdef extern from *:
    """
    #include <rmm_uvm/driver/uvm_driver.hpp>
    #include <array>
    // One range at a time is all that Python asks for; spans do not cross into Cython.
    inline rmm_uvm::status rmm_uvm_discard_one(rmm_uvm::uvm_driver& driver,
                                               rmm_uvm::memory_range range,
                                               rmm_uvm::stream_handle stream) noexcept {
      std::array<rmm_uvm::memory_range, 1> const ranges{range};
      return driver.discard(ranges, stream);
    }
    inline rmm_uvm::status rmm_uvm_discard_and_prefetch_one(rmm_uvm::uvm_driver& driver,
                                                            rmm_uvm::memory_range range,
                                                            rmm_uvm::location where,
                                                            rmm_uvm::stream_handle stream) noexcept {
      std::array<rmm_uvm::memory_range, 1> const ranges{range};
      return driver.discard_and_prefetch(ranges, where, stream);
    }
    """
    status discard_one "rmm_uvm_discard_one"(uvm_driver&, memory_range, stream_handle) noexcept nogil
    status discard_and_prefetch_one "rmm_uvm_discard_and_prefetch_one"(
        uvm_driver&, memory_range, location, stream_handle) noexcept nogil


cdef extern from "rmm_uvm/driver/device_memory_reader.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass device_memory_reader:
        bool read(device_memory&) noexcept

cdef extern from "rmm_uvm/driver/memory_levels.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass memory_levels:
        uint64_t footprint_bytes
        uint64_t managed_bytes
        uint64_t prefetched_bytes
        uint64_t discarded_bytes
        uint64_t waited_ns

    cdef cppclass memory_level_source:
        memory_levels levels() noexcept


cdef inline memory_range range_of(uintptr_t address, size_t nbytes) noexcept nogil:
    cdef memory_range found
    found.address = address
    found.bytes = nbytes
    return found


cdef object as_availability(const availability& value)
cdef int check(status result, what) except -1


cdef class UvmDriver:
    cdef shared_ptr[uvm_driver] handle


cdef class MemoryReader:
    cdef shared_ptr[device_memory_reader] handle


cdef class LevelSource:
    cdef shared_ptr[memory_level_source] handle


cdef class MemoryObserver:
    cdef shared_ptr[memory_observer] handle

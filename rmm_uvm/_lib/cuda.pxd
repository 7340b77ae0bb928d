# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport (
    UvmDriver,
    availability,
    device_memory_reader,
    migration_totals,
    uvm_driver,
)


cdef extern from "rmm_uvm/cuda/cuda_api.hpp" namespace "rmm_uvm::cuda" nogil:
    cdef cppclass cuda_api:
        pass

    cdef cppclass loaded_cuda_api:
        cuda_api api
        availability loaded

    loaded_cuda_api load_cuda_api() except +

cdef extern from "rmm_uvm/cuda/cuda_driver.hpp" namespace "rmm_uvm::cuda" nogil:
    cdef cppclass opened_cuda_driver:
        shared_ptr[uvm_driver] driver
        availability opened

    opened_cuda_driver open_cuda_driver "rmm_uvm::cuda::cuda_driver::open"(
        const cuda_api&, int, bool) except +

cdef extern from "rmm_uvm/cuda/process_counters.hpp" namespace "rmm_uvm::cuda" nogil:
    cdef cppclass process_counters_request:
        pass

    cdef cppclass process_counters:
        availability available() except +
        migration_totals read() noexcept
        bool exited() noexcept
        bool wait_exit(int) noexcept
        void close() noexcept

    cdef cppclass opened_process_counters:
        unique_ptr[process_counters] counters
        availability opened

    opened_process_counters open_process_counters "rmm_uvm::cuda::process_counters::open"(
        const process_counters_request&) except +
    availability may_attach(int) except +

cdef extern from *:
    """
    #include <rmm_uvm/cuda/process_counters.hpp>
    #include <algorithm>
    // A std::optional of a std::array does not cross into Cython.
    inline rmm_uvm::cuda::process_counters_request rmm_uvm_request(int pid,
                                                                   std::string const& uuid,
                                                                   bool faults) {
      rmm_uvm::cuda::process_counters_request request{pid, std::nullopt, faults};
      if (uuid.size() == 16) {
        request.processor.emplace();
        std::copy(uuid.begin(), uuid.end(), request.processor->begin());
      }
      return request;
    }
    """
    process_counters_request make_request "rmm_uvm_request"(
        int, const string&, bool) except + nogil

cdef extern from "rmm_uvm/cuda/nvml_api.hpp" namespace "rmm_uvm::cuda" nogil:
    cdef cppclass nvml_api:
        pass

    cdef cppclass loaded_nvml_api:
        nvml_api api
        availability loaded

    loaded_nvml_api load_nvml_api() except +

cdef extern from "rmm_uvm/cuda/nvml.hpp" namespace "rmm_uvm::cuda" nogil:
    cdef cppclass nvml_memory:
        uint64_t used_bytes
        uint64_t free_bytes
        uint64_t total_bytes

    cdef cppclass pcie_throughput:
        uint64_t received_bytes_per_second
        uint64_t sent_bytes_per_second

    cdef cppclass nvml_utilization:
        unsigned int kernel_percent
        unsigned int memory_percent

    cdef struct nvlink_reading:
        unsigned int active_links
        uint64_t link_bytes_per_second
        uint64_t sent_bytes
        uint64_t received_bytes
        int64_t read_at_us

    cdef cppclass nvml_device:
        string uuid
        string name

    cdef cppclass nvml_process:
        unsigned int pid
        optional[uint64_t] used_bytes

    cdef cppclass nvml:
        availability devices(vector[nvml_device]&) except +
        availability memory(const string&, nvml_memory&) except +
        availability pcie(const string&, pcie_throughput&) except +
        availability utilization(const string&, nvml_utilization&) except +
        availability nvlink(const string&, nvlink_reading&) except +
        availability processes(const string&, vector[nvml_process]&) except +

    cdef cppclass opened_nvml:
        shared_ptr[nvml] library
        availability opened

    opened_nvml open_nvml "rmm_uvm::cuda::nvml::open"(const nvml_api&) except +

    cdef cppclass nvml_memory_reader(device_memory_reader):
        nvml_memory_reader(shared_ptr[nvml], const string&) except +


cdef class CudaDriver(UvmDriver):
    pass


cdef class ProcessCounters:
    cdef unique_ptr[process_counters] handle
    cdef readonly int pid
    cdef process_counters* _counters(self) except NULL


cdef class Nvml:
    cdef shared_ptr[nvml] library
    cdef readonly object available
    cdef nvml* _open(self) except NULL

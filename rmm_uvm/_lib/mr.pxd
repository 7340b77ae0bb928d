# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.optional cimport optional
from libcpp.string cimport string

from rmm.librmm.memory_resource cimport (
    any_resource,
    device_accessible,
    device_async_resource_ref,
)
from rmm.pylibrmm.memory_resource cimport DeviceMemoryResource, UpstreamResourceAdaptor

from rmm_uvm._lib.account cimport ManagedAccount, managed_account
from rmm_uvm._lib.driver cimport (
    UvmDriver,
    memory_level_source,
    memory_observer,
    memory_range,
    observer_slot,
)
from rmm_uvm._lib.residency cimport (
    ManagedResidency,
    prefetch_mode,
    managed_residency,
)
from rmm_uvm._lib.sim cimport SimulatedDevice, simulated_device


cdef extern from "rmm_uvm/mr/managed_memory_resource.hpp" namespace "rmm_uvm::mr" nogil:
    cdef cppclass managed_memory_resource:
        managed_memory_resource(
            shared_ptr[managed_residency], shared_ptr[managed_account], prefetch_mode) except +
        uint64_t refused_frees() noexcept
        shared_ptr[memory_level_source] levels() except +

cdef extern from "rmm_uvm/mr/uvm_resource_adaptor.hpp" namespace "rmm_uvm::mr::detail" nogil:
    cdef struct trim_outcome:
        size_t given_back_bytes
        size_t discarded_bytes
        string reason

cdef extern from "rmm_uvm/mr/uvm_resource_adaptor.hpp" namespace "rmm_uvm::mr" nogil:
    cdef cppclass uvm_resource_adaptor:
        uvm_resource_adaptor(
            any_resource[device_accessible], shared_ptr[managed_residency], prefetch_mode) except +
        size_t allocated_bytes() noexcept
        size_t peak_bytes() noexcept
        void reset_peak() noexcept
        uint64_t refused_frees() noexcept
        optional[memory_range] allocation_at(uintptr_t) except +
        trim_outcome trim(size_t) except +
        shared_ptr[memory_level_source] levels() noexcept
        void observe(shared_ptr[memory_observer]) except +
        observer_slot& observers() noexcept

cdef extern from "rmm_uvm/mr/simulated_cuda_memory_resource.hpp" namespace "rmm_uvm::mr" nogil:
    cdef cppclass simulated_cuda_memory_resource:
        simulated_cuda_memory_resource(shared_ptr[simulated_device]) except +

cdef extern from "rmm_uvm/mr/bounded_resource.hpp" namespace "rmm_uvm::mr" nogil:
    cdef cppclass bounded_resource:
        bounded_resource(any_resource[device_accessible], size_t) except +

cdef extern from "rmm_uvm/mr/observed_resource.hpp" namespace "rmm_uvm::mr" nogil:
    cdef cppclass observed_resource:
        observed_resource(any_resource[device_accessible], int) except +
        observer_slot& observers() noexcept

cdef extern from * nogil:
    """
    #include <cuda/memory_resource>
    #include <cuda/stream>

    // Of whatever C++ types the streams and resources of an RMM are.
    template <typename Resource, typename Stream>
    void* allocate_in(Resource& from, Stream stream, std::size_t bytes, std::size_t alignment)
    {
      return from.allocate(cuda::stream_ref{stream}, bytes, alignment);
    }
    template <typename Resource, typename Stream>
    bool try_deallocate_in(Resource& to, Stream stream, void* ptr, std::size_t bytes) noexcept
    {
      return to.try_deallocate(cuda::stream_ref{stream}, ptr, bytes);
    }
    template <typename Reference>
    cuda::mr::any_resource<cuda::mr::device_accessible> any_of(Reference reference)
    {
      return cuda::mr::any_resource<cuda::mr::device_accessible>{reference};
    }
    """
    void* allocate_in[Resource, Stream](Resource&, Stream, size_t, size_t) except +
    bool try_deallocate_in[Resource, Stream](Resource&, Stream, void*, size_t) noexcept
    any_resource[device_accessible] any_of[Reference](Reference) except +

cdef extern from *:  # overloads of the template that RMM's .pxd defines
    optional[device_async_resource_ref] make_device_async_resource_ref(
        managed_memory_resource&) except +
    optional[device_async_resource_ref] make_device_async_resource_ref(
        uvm_resource_adaptor&) except +
    optional[device_async_resource_ref] make_device_async_resource_ref(
        simulated_cuda_memory_resource&) except +
    optional[device_async_resource_ref] make_device_async_resource_ref(
        bounded_resource&) except +
    optional[device_async_resource_ref] make_device_async_resource_ref(
        observed_resource&) except +


cdef class ManagedMemoryResource(DeviceMemoryResource):
    cdef unique_ptr[managed_memory_resource] resource
    cdef readonly UvmDriver driver
    cdef readonly ManagedResidency residency
    cdef readonly ManagedAccount account
    cdef readonly size_t pool_maximum_bytes


cdef class UvmResourceAdaptor(UpstreamResourceAdaptor):
    cdef unique_ptr[uvm_resource_adaptor] resource
    cdef readonly ManagedMemoryResource managed_mr
    cdef readonly str prefetch


cdef class SimulatedCudaMemoryResource(DeviceMemoryResource):
    cdef unique_ptr[simulated_cuda_memory_resource] resource
    cdef readonly SimulatedDevice driver


cdef class _BoundedResource(DeviceMemoryResource):
    cdef unique_ptr[bounded_resource] resource
    cdef object asking


cdef class ObservedResource(UpstreamResourceAdaptor):
    cdef unique_ptr[observed_resource] resource

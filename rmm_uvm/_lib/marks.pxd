# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.optional cimport optional
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport UvmDriver, status, stream_handle


cdef extern from "rmm_uvm/driver/device_transfers.hpp" namespace "rmm_uvm" nogil:
    size_t ipc_handle_bytes

    cdef cppclass ipc_handle:
        uint8_t* data() noexcept

    cdef cppclass memory_kind:
        bool managed
        bool ipc_capable
        uintptr_t base
        size_t bytes
        int device_id

    cdef cppclass transfer:
        uintptr_t to
        uintptr_t start "from"
        size_t bytes

    cdef cppclass transfer_mark:
        status done(bool&) noexcept
        status wait() noexcept
        status make_wait(stream_handle) noexcept

    cdef cppclass ipc_event:
        const ipc_handle& handle() noexcept
        status record(stream_handle) noexcept
        status make_wait(stream_handle) noexcept

    cdef cppclass device_transfers:
        const char* error_name(int) noexcept
        status find_memory(uintptr_t, optional[memory_kind]&) noexcept
        status wait_for(stream_handle) noexcept
        status copy(vector[transfer]&) noexcept
        status take_staging(size_t) noexcept
        status mark(shared_ptr[transfer_mark]&) noexcept
        status ipc_memory_handle(uintptr_t, ipc_handle&) noexcept
        status open_ipc_memory(const ipc_handle&, uintptr_t&) noexcept
        status close_ipc_memory(uintptr_t) noexcept
        status make_ipc_event(shared_ptr[ipc_event]&) noexcept
        status open_ipc_event(const ipc_handle&, shared_ptr[ipc_event]&) noexcept


cdef int check_transfer(
    const shared_ptr[device_transfers]& transfers, UvmDriver driver, status result, what, remedy
) except -1
cdef bytes bytes_of_handle(const ipc_handle& handle)


cdef class Mark:
    cdef shared_ptr[transfer_mark] handle
    cdef shared_ptr[device_transfers] maker
    cdef UvmDriver driver


cdef class IpcEvent:
    cdef shared_ptr[ipc_event] event
    cdef shared_ptr[device_transfers] maker
    cdef UvmDriver driver

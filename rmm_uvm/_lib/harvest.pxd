# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport availability, uuid_bytes


cdef extern from "rmm_uvm/residency/neighbor_lender.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass neighbor_lender:
        size_t claim(int, size_t, size_t, size_t) noexcept
        void placed(int, size_t) noexcept
        void cancel(int, size_t) noexcept
        void release(int, size_t) noexcept
        size_t excess(int, size_t) noexcept
        size_t held(int) noexcept
        bool busy(int) noexcept

cdef extern from "rmm_uvm/residency/budget_sharing.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass budget_sharing:
        pass

cdef extern from "rmm_uvm/residency/harvest_rule.hpp" namespace "rmm_uvm" nogil:
    cdef cppclass harvest_holding:
        size_t claimed_bytes
        size_t coming_bytes

cdef extern from "rmm_uvm/ipc/harvest_board.hpp" namespace "rmm_uvm::ipc" nogil:
    cdef cppclass harvest_board:
        availability usable() except +
        bool offer(const uuid_bytes&, size_t) noexcept
        void withdraw(const uuid_bytes&) noexcept
        size_t claimed_by_others(const uuid_bytes&) noexcept
        bool set_busy(const uuid_bytes&, bool) noexcept
        size_t claim(const uuid_bytes&, size_t, size_t, size_t) noexcept
        void placed(const uuid_bytes&, size_t) noexcept
        void cancel(const uuid_bytes&, size_t) noexcept
        void release(const uuid_bytes&, size_t) noexcept
        size_t held(const uuid_bytes&) noexcept
        size_t excess(const uuid_bytes&, size_t) noexcept
        bool busy(const uuid_bytes&) noexcept

    cdef cppclass opened_harvest_board:
        unique_ptr[harvest_board] board
        string reason

    cdef cppclass harvest_entry:
        uint32_t process_id
        uuid_bytes device
        bool offers
        bool busy
        size_t offered_bytes
        harvest_holding holding

    cdef cppclass harvest_view:
        availability readable
        string path
        vector[uint32_t] processes
        vector[harvest_entry] entries

    const char* usual_directory "rmm_uvm::ipc::harvest_board::usual_directory"
    opened_harvest_board open_harvest_board "rmm_uvm::ipc::harvest_board::open"(
        const string&) except +
    harvest_view look_at_harvest_board "rmm_uvm::ipc::harvest_board::look"(const string&) except +

cdef extern from "rmm_uvm/ipc/board_lender.hpp" namespace "rmm_uvm::ipc" nogil:
    cdef cppclass named_device "rmm_uvm::ipc::board_lender::named_device":
        int device_id
        uuid_bytes uuid

    cdef cppclass board_lender(neighbor_lender):
        board_lender(shared_ptr[harvest_board], vector[named_device]) except +

cdef extern from "rmm_uvm/ipc/board_sharing.hpp" namespace "rmm_uvm::ipc" nogil:
    cdef cppclass board_sharing(budget_sharing):
        board_sharing(shared_ptr[harvest_board], uuid_bytes) except +


cdef class NeighborLender:
    cdef shared_ptr[neighbor_lender] handle


cdef class HarvestBoard:
    cdef shared_ptr[harvest_board] handle
    cdef shared_ptr[budget_sharing] sharing(self, device) except *

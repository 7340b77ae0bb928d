# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

from libcpp.memory cimport shared_ptr

from rmm_uvm._lib.driver cimport UvmDriver, status, uvm_driver
from rmm_uvm._lib.marks cimport device_transfers
from rmm_uvm._lib.sim cimport simulated_device


cdef extern from "rmm_uvm/sim/simulated_transfers.hpp" namespace "rmm_uvm::sim" nogil:
    cdef cppclass simulated_transfers(device_transfers):
        simulated_transfers(shared_ptr[simulated_device]) except +

cdef extern from "rmm_uvm/cuda/cuda_driver.hpp" namespace "rmm_uvm::cuda" nogil:
    cdef cppclass c_cuda_driver "rmm_uvm::cuda::cuda_driver"(uvm_driver):
        pass

cdef extern from "rmm_uvm/cuda/cuda_transfers.hpp" namespace "rmm_uvm::cuda" nogil:
    cdef cppclass cuda_transfers(device_transfers):
        cuda_transfers(shared_ptr[c_cuda_driver]) except +


cdef class Transfers:
    cdef shared_ptr[device_transfers] handle
    cdef readonly UvmDriver driver
    cdef int _check(self, status result, what, remedy) except -1

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver (`cpp/include/rmm_uvm/cuda`): libcuda by dlopen."""

from libcpp cimport bool
from libcpp.memory cimport shared_ptr

from rmm_uvm._lib.driver cimport UvmDriver, as_availability, availability, uvm_driver

from rmm_uvm.errors import DriverError


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


cdef class CudaDriver(UvmDriver):
    """A GPU, through libcuda. Made by `rmm_uvm.drivers.cuda_driver`.

    Raises
    ------
    DriverError
        If there is no libcuda, it is too old, or the device cannot be opened.
    """

    def __init__(self, int device_id=0, *, bool counters=True):
        cdef loaded_cuda_api library = load_cuda_api()
        if not library.loaded.available:
            raise DriverError(
                f"{library.loaded.reason.decode()}; \"rmm-uvm doctor\" says more, and "
                "driver=\"simulated:16GiB\" needs no GPU"
            )
        cdef opened_cuda_driver opened
        with nogil:
            opened = open_cuda_driver(library.api, device_id, counters)
        if not opened.opened.available:
            raise DriverError(opened.opened.reason.decode())
        self.handle = opened.driver


def libcuda_available():
    """Whether libcuda can be loaded here, a `rmm_uvm.device_info.Availability`."""
    return as_availability(load_cuda_api().loaded)

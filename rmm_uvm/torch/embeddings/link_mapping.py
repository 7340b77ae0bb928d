# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A mapping through which a GPU's kernels use memory where it is, without a fault for each page.

Covers `cuMemAdvise` with "accessed by". Memory that only belongs to the host is mapped page by page
as kernels fault; this maps what is there at once, and keeps it mapped when it is evicted.
"""

from __future__ import annotations

from typing import Any

from rmm_uvm._lib.current_device import current_device
from rmm_uvm._lib.driver import UvmDriver

__all__ = ["map_through_link", "unmap"]


def map_through_link(driver: UvmDriver, address: int, nbytes: int) -> str:
    """Map memory for kernels of the driver's GPU; return why that was refused, empty if it was not.

    Parameters
    ----------
    driver : UvmDriver
        Of a GPU.
    address, nbytes : int
        Whole blocks of managed memory.
    """
    from cuda.bindings import driver as cuda

    return _advise(driver, address, nbytes, cuda.CUmem_advise.CU_MEM_ADVISE_SET_ACCESSED_BY)


def unmap(driver: UvmDriver, address: int, nbytes: int) -> str:
    """Take it back: a pool hands the addresses out again. Parameters and result as above."""
    from cuda.bindings import driver as cuda

    return _advise(driver, address, nbytes, cuda.CUmem_advise.CU_MEM_ADVISE_UNSET_ACCESSED_BY)


def _advise(driver: UvmDriver, address: int, nbytes: int, advice: Any) -> str:
    from cuda.bindings import driver as cuda

    location = cuda.CUmemLocation()
    location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = driver.info.device_id
    with current_device(driver):
        (result,) = cuda.cuMemAdvise(address, nbytes, advice, location)
    if result == cuda.CUresult.CUDA_SUCCESS:
        return ""
    return f"cuMemAdvise: {result.name} for a mapping of {nbytes} bytes"

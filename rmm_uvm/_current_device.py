# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Make a device current for one scope, without touching any other device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.errors import DriverError


@contextlib.contextmanager
def current_device(driver: UvmDriver) -> Iterator[None]:
    """Push the primary context of the driver's device; RMM asks that resources be made under it.

    ``cudaSetDevice`` would not do: setting the old device again makes a context there. Nothing is
    done for a simulated device.

    Raises
    ------
    DriverError
        If the context cannot be made current.
    """
    info = driver.info
    if info.simulated:
        yield
        return
    from cuda.bindings import driver as cuda

    def call(result: tuple[object, ...]) -> object:
        if result[0] != cuda.CUresult.CUDA_SUCCESS:
            raise DriverError(f"device {info.device_id} cannot be made current: {result[0]}")
        return result[1] if len(result) > 1 else None

    device = call(cuda.cuDeviceGet(info.device_id))
    call(cuda.cuCtxPushCurrent(call(cuda.cuDevicePrimaryCtxRetain(device))))
    try:
        yield
    finally:
        call(cuda.cuCtxPopCurrent())
        cuda.cuDevicePrimaryCtxRelease(device)

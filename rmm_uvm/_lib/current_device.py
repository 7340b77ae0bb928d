# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Make a device current for one scope, without touching any other device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.errors import DriverError
from rmm_uvm.machine.device_info import DeviceInfo


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
    context = call(cuda.cuDevicePrimaryCtxRetain(device))
    try:
        call(cuda.cuCtxPushCurrent(context))
        try:
            yield
        finally:
            # Not checked: a failure here would hide the error of the scope itself.
            cuda.cuCtxPopCurrent()
    finally:
        cuda.cuDevicePrimaryCtxRelease(device)


def ensure_context(info: DeviceInfo) -> None:
    """Give this thread a context if it has none, and its device is that one.

    `rmm.reinitialize` leaves one behind too, and programs rely on it: RMM's streams cannot be
    synchronised without. A context that is there, and the choice of device, are left alone.
    """
    if info.simulated:
        return
    from cuda.bindings import driver as cuda
    from cuda.bindings import runtime

    _, context = cuda.cuCtxGetCurrent()
    _, device_id = runtime.cudaGetDevice()  # an ordinal of this thread; makes no context
    if not int(context) and device_id == info.device_id:
        runtime.cudaSetDevice(device_id)

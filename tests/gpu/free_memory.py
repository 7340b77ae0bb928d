# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory of a device is free, once what was freed before counts as free."""

from __future__ import annotations

import time

import cupy
import pytest

import rmm_uvm
from rmm_uvm.drivers import CudaDriver

LONGEST_SECONDS = 5.0
STEADY_SECONDS = 0.1
RESIDUE_BYTES = 512 << 20  # at least what any test before had there


def steady_free_bytes(driver: CudaDriver) -> int:
    """Return free memory of a device once it no longer changes.

    What the tests before freed would come back between two readings: the kernel driver may count it
    as free later, or only when it hands out there again (seen: 264 MB between two H200s).
    """
    _place_and_free(driver)
    begin = since = time.monotonic()
    free_bytes = driver.memory()[0]
    while (now := time.monotonic()) - since < STEADY_SECONDS:
        if now - begin > LONGEST_SECONDS:
            pytest.fail(
                f"free memory of device {driver.info.device_id} still changes after "
                f"{LONGEST_SECONDS:g} s: {free_bytes:,} bytes now"
            )
        time.sleep(0.005)
        if (found := driver.memory()[0]) != free_bytes:
            free_bytes, since = found, time.monotonic()
    return free_bytes


def _place_and_free(driver: CudaDriver) -> None:
    mr = rmm_uvm.mr.ManagedMemoryResource(driver, prefetch="never")
    with cupy.cuda.Device(driver.info.device_id) as device:
        address = int(mr.allocate(RESIDUE_BYTES))
        driver.prefetch(address, RESIDUE_BYTES, "device")
        device.synchronize()
        mr.deallocate(address, RESIDUE_BYTES)

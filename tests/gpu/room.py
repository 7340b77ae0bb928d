# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a device has room for tests: more managed memory than it has free can hang it."""

from __future__ import annotations

from rmm_uvm._lib.limits import managed_limit_bytes
from rmm_uvm.drivers import UvmDriver


def lacking(driver: UvmDriver) -> str:
    """Return why tests do not run on a device: it has less free than the cap; empty if it has."""
    free_bytes, _ = driver.memory()
    limit_bytes = managed_limit_bytes()
    if limit_bytes is None:
        return "RMM_UVM_MANAGED_LIMIT is not set"
    if limit_bytes <= free_bytes:
        return ""
    return (
        f"{free_bytes} bytes are free on device {driver.info.device_id}: "
        "fewer than RMM_UVM_MANAGED_LIMIT"
    )

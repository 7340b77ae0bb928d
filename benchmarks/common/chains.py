# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The resource chains that benchmarks compare, by the names that `rmm-uvm mortgage` uses.

Stock managed chains get RMM's limiting adaptor, so that they too stay under the cap.
"""

from __future__ import annotations

import rmm

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor


def limited_managed(size_bytes: int) -> rmm.mr.DeviceMemoryResource:
    """RMM's own managed memory under a cap."""
    return rmm.mr.LimitingResourceAdaptor(rmm.mr.ManagedMemoryResource(), size_bytes)


def pool(upstream: rmm.mr.DeviceMemoryResource, size_bytes: int) -> rmm.mr.PoolMemoryResource:
    """RMM's pool of a fixed size."""
    return rmm.mr.PoolMemoryResource(upstream, size_bytes, size_bytes)


def make_chain(name: str, size_bytes: int, driver: UvmDriver) -> rmm.mr.DeviceMemoryResource:
    """Build one chain of a fixed size."""
    if name == "cuda-pool":
        return pool(rmm.mr.CudaMemoryResource(), size_bytes)
    if name == "rmm-managed":
        return pool(limited_managed(size_bytes), size_bytes)
    if name == "rmm-prefetch":
        return rmm.mr.PrefetchResourceAdaptor(pool(limited_managed(size_bytes), size_bytes))
    if name == "managed":
        return UvmResourceAdaptor(pool(ManagedMemoryResource(driver), size_bytes))
    raise ValueError(name)

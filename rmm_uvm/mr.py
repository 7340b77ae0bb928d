# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory resources: ordinary subclasses of `rmm.mr.DeviceMemoryResource`.

They stack with every adaptor and pool of RMM. The chain that `rmm_uvm.managed_pool` builds is
``UvmResourceAdaptor(rmm.mr.PoolMemoryResource(ManagedMemoryResource(driver)))``.
"""

from __future__ import annotations

from rmm_uvm._lib.mr import (
    ManagedMemoryResource,
    SimulatedCudaMemoryResource,
    UvmResourceAdaptor,
)
from rmm_uvm._lib.residency import ManagedAccount, Prefetcher

__all__ = [
    "ManagedAccount",
    "ManagedMemoryResource",
    "Prefetcher",
    "SimulatedCudaMemoryResource",
    "UvmResourceAdaptor",
]

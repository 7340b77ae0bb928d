# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Managed memory for RAPIDS: data may exceed the GPU.

`reinitialize` installs a managed-memory pool with prefetch-on-allocate for cuDF, CuPy and, on
request, PyTorch. The building blocks are in `rmm_uvm.mr`, `managed_pool` and `ipc_pool`.
"""

from __future__ import annotations

from rmm_uvm import _rmm_check as _rmm_check  # first: says in one line what is wrong with RMM
from rmm_uvm import mr
from rmm_uvm.drivers import cuda_driver, simulated_device
from rmm_uvm.install import reinitialize, restore
from rmm_uvm.pools import ipc_pool, managed_pool

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "cuda_driver",
    "ipc_pool",
    "managed_pool",
    "mr",
    "reinitialize",
    "restore",
    "simulated_device",
]

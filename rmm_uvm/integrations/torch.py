# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch: RMM's pluggable allocator, for the rest of the process.

torch can change its allocator once, before its first CUDA allocation, and frees through whichever
RMM resource is current at the time. So this wiring is permanent, and the resource may not be
replaced afterwards.
"""

from __future__ import annotations

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.support.optional_packages import too_old


def wire() -> Wiring:
    """Change torch's CUDA allocator to RMM's.

    Raises
    ------
    AvailabilityError
        If torch has allocated CUDA memory already.
    """
    try:
        import torch
    except ImportError:
        return Wiring("torch", active=False, reason="not installed")
    if problem := too_old("torch"):  # what is below may not be there
        return Wiring("torch", active=False, reason=problem)
    from rmm.allocators.torch import rmm_torch_allocator

    if rmm_torch_allocator is None:
        return Wiring("torch", active=False, reason="torch sees no GPU")
    try:
        torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
    except RuntimeError as error:
        raise AvailabilityError(
            "torch has allocated CUDA memory already: call rmm_uvm.reinitialize before it does, "
            "or leave 'torch' out of libraries"
        ) from error
    return Wiring("torch", active=True, reason="allocates through RMM", permanent=True)

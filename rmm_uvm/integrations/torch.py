# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch: RMM's pluggable allocator, for the rest of the process.

torch can change its allocator once, before its first CUDA allocation, and frees through whichever
RMM resource is current at the time. So this wiring is permanent, and the resource may not be
replaced afterwards.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from rmm_uvm._lib import torch_rmm
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.support.optional_packages import too_old


def wire() -> Wiring:
    """Change torch's CUDA allocator to RMM's, which raises torch's own error without memory.

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
    allocator = _raising_torchs_error(torch.cuda.memory)
    try:
        torch.cuda.memory.change_current_allocator(allocator or rmm_torch_allocator)
    except RuntimeError as error:
        raise AvailabilityError(
            "torch has allocated CUDA memory already: call rmm_uvm.reinitialize before it does, "
            "or leave 'torch' out of libraries"
        ) from error
    reason = "allocates through RMM"
    if allocator is None:
        reason += "; without memory it raises RuntimeError"
    return Wiring("torch", active=True, reason=reason, permanent=True)


def _raising_torchs_error(memory: Any) -> Any:
    """Return RMM's allocator behind one of ours; None where torch's error or RMM's is not found."""
    try:
        from rmm.librmm import _logger

        theirs = ctypes.CDLL(str(Path(_logger.__file__).parent / "_torch_allocator.so"))
        functions = theirs.allocate, theirs.deallocate
    except (ImportError, OSError, AttributeError):
        return None
    addresses = (ctypes.cast(each, ctypes.c_void_p).value or 0 for each in functions)
    if not torch_rmm.go_through_rmm(*addresses):
        return None
    return memory.CUDAPluggableAllocator(
        torch_rmm.__file__, torch_rmm.ALLOCATE, torch_rmm.DEALLOCATE
    )

# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""CuPy: its allocator becomes RMM's, on CuPy's current stream."""

from __future__ import annotations

from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.support.optional_packages import too_old


def wire() -> Wiring:
    """Set CuPy's allocator to RMM's; importing cuDF does the same."""
    try:
        import cupy
    except ImportError:
        return Wiring("cupy", active=False, reason="not installed")
    if problem := too_old("cupy"):  # what is below may not be there
        return Wiring("cupy", active=False, reason=problem)
    from rmm.allocators.cupy import rmm_cupy_allocator

    previous = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(rmm_cupy_allocator)

    def undo() -> None:
        if cupy.cuda.get_allocator() is rmm_cupy_allocator:  # else somebody's later choice stays
            cupy.cuda.set_allocator(previous)

    return Wiring("cupy", active=True, reason="allocates through RMM", undo=undo)

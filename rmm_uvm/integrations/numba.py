# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Numba: its arrays on the device come from RMM's current resource.

Numba gives each of its contexts, one a device, the memory manager that is set when it makes it, for
as long as the context lives. So ours has to be set before. Importing cuDF sets the same manager.
"""

from __future__ import annotations

import importlib

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.integrations.wiring import Wiring


def wire() -> Wiring:
    """Set Numba's memory manager to RMM's.

    It is undone for contexts that Numba has not made by then. The others go on with RMM's resource,
    whichever is current: each array holds the one that it came from.

    Raises
    ------
    AvailabilityError
        If Numba has made a context with another memory manager.
    """
    try:
        cuda = importlib.import_module("numba.cuda")
        from numba.cuda.cudadrv import driver
        from rmm.allocators.numba import RMMNumbaManager
    except ImportError as error:  # with NUMBA_ENABLE_CUDASIM=1 names are missing in what is there
        missing = isinstance(error, ModuleNotFoundError) and error.name in ("numba", "numba.cuda")
        problem = "is not installed" if missing else f"cannot be used: {error}"
        return Wiring("numba", active=False, reason=f"numba-cuda {problem}")
    if not driver.driver.is_available:
        return Wiring("numba", active=False, reason="numba sees no GPU")
    contexts = [gpu.primary_context for gpu in cuda.gpus]
    if any(each and not isinstance(each.memory_manager, RMMNumbaManager) for each in contexts):
        raise AvailabilityError(
            "numba has used a GPU already, and keeps its memory manager: call rmm_uvm.reinitialize "
            "before it does, or leave 'numba' out of libraries"
        )
    previous = driver._memory_manager  # None: Numba has not read NUMBA_CUDA_MEMORY_MANAGER yet
    cuda.set_memory_manager(RMMNumbaManager)

    def undo() -> None:
        if driver._memory_manager is RMMNumbaManager:  # else somebody's later choice stays
            driver._memory_manager = previous

    return Wiring("numba", active=True, reason="allocates through RMM", undo=undo)

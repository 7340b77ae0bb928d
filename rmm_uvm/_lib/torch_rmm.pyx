# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""RMM's allocator for torch, but that what it raises without memory is torch's own error.

Covers what `cpp/include/rmm_uvm/torch/rmm_allocator.hpp` does. torch looks the functions up in this
library, by the names below.
"""

from libc.stdint cimport uintptr_t
from libcpp cimport bool

cdef extern from "rmm_uvm/torch/rmm_allocator.hpp" namespace "rmm_uvm::torch" nogil:
    ctypedef void* (*allocate_function "decltype(rmm_uvm::torch::rmm_functions::allocate)")()
    ctypedef void (*deallocate_function "decltype(rmm_uvm::torch::rmm_functions::deallocate)")()
    cdef cppclass rmm_functions:
        allocate_function allocate
        deallocate_function deallocate
    bool go_through(rmm_functions) noexcept

ALLOCATE = "rmm_uvm_allocate_through_rmm"
DEALLOCATE = "rmm_uvm_deallocate_through_rmm"


def go_through_rmm(uintptr_t allocate, uintptr_t deallocate):
    """Have the functions go through RMM's two; return whether torch's error was found (bool).

    Call it once, before torch allocates, with torch imported.
    """
    cdef rmm_functions functions
    functions.allocate = <allocate_function>allocate
    functions.deallocate = <deallocate_function>deallocate
    return go_through(functions)

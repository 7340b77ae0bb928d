// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rmm_uvm::torch {

/** @brief The two functions of RMM's allocator for torch, as torch calls them. */
struct rmm_functions {
  void* (*allocate)(std::ptrdiff_t bytes, int device, void* stream){nullptr};
  void (*deallocate)(void* memory, std::ptrdiff_t bytes, int device, void* stream){nullptr};
};

/**
 * @brief Has the functions below go through RMM's, from now on.
 *
 * To be called once, before torch allocates, with torch imported.
 *
 * @return whether torch's own error of memory was found, in the libraries of torch that are loaded
 */
bool go_through(rmm_functions functions) noexcept;

}  // namespace rmm_uvm::torch

// What torch.cuda.memory.CUDAPluggableAllocator looks up by name.
extern "C" {
/**
 * @brief Memory of RMM's current resource.
 * @throws c10::OutOfMemoryError where RMM throws std::bad_alloc, if `go_through` found it
 */
__attribute__((visibility("default"))) void* rmm_uvm_allocate_through_rmm(std::ptrdiff_t bytes,
                                                                          int device,
                                                                          void* stream);
/** @brief Gives it back. */
__attribute__((visibility("default"))) void rmm_uvm_deallocate_through_rmm(void* memory,
                                                                           std::ptrdiff_t bytes,
                                                                           int device,
                                                                           void* stream);
}

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/mr/torch_segments.hpp>

#include <cstddef>
#include <memory>

namespace rmm_uvm::mr {

/**
 * @brief Has torch's calls about a device answered by `segments`, from now on. Thread-safe.
 *
 * Whoever answered before takes back what it handed out, and is let go when nothing of that is left
 * and no call to it is under way. The same holds for `segments` itself later.
 *
 * @param segments null: requests are refused; segments of earlier ones can still be given back
 */
void answer_torch(int device, std::shared_ptr<torch_segments> segments);

/**
 * @brief Has `segments` hand out no more memory for a device; nobody does then. Thread-safe.
 *
 * Calls that are under way end as they would have. Does nothing if another one answers already.
 */
void leave_torch(int device, std::shared_ptr<torch_segments> const& segments) noexcept;

}  // namespace rmm_uvm::mr

// What torch.cuda.memory.CUDAPluggableAllocator looks up by name.
extern "C" {
/** @brief Memory of `bytes` for a device; null if there is none. */
__attribute__((visibility("default"))) void* rmm_uvm_torch_allocate(std::ptrdiff_t bytes,
                                                                    int device,
                                                                    void* stream);
/** @brief Gives it back. */
__attribute__((visibility("default"))) void rmm_uvm_torch_deallocate(void* segment,
                                                                     std::ptrdiff_t bytes,
                                                                     int device,
                                                                     void* stream);
}

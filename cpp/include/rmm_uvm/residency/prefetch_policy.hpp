// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace rmm_uvm {

/** @brief When an allocation is prefetched. */
enum class prefetch_mode : std::uint8_t {
  automatic,  ///< only blocks that may have left the device, and without copying dead contents
  always,     ///< the whole allocation, every time, as RMM's adaptor does
  never       ///< leave it to page faults
};

/** @brief What to issue for one allocation. The two lists do not overlap. */
struct prefetch_plan {
  std::vector<memory_range> kept;  ///< prefetch these as they are: others may live in them
  std::vector<memory_range> dead;  ///< discard the contents, then prefetch: nothing is copied
};

/**
 * @brief Splits the doubtful blocks of a new allocation into what may be discarded and what not.
 *
 * A block that lies wholly inside the allocation holds nothing else, and the contents of a new
 * allocation are dead by definition. The blocks at its edges may be shared with other live
 * allocations (pools align to 256 bytes) and must be moved with their contents.
 *
 * Pure; a block is discarded only when all of its 2 MiB window lies in `allocation`.
 * @param allocation the new allocation
 * @param doubtful_runs whole blocks (or cut off at the slab's end), ascending
 * @param discards false: everything is prefetched as it is
 */
[[nodiscard]] prefetch_plan plan_allocation(memory_range allocation,
                                            std::span<memory_range const> doubtful_runs,
                                            bool discards);

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/block_record.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace rmm_uvm {

/** @brief Live blocks that are not known to be on the device. */
struct absent_blocks {
  std::vector<memory_range> doubtful;  ///< they may be there
  std::vector<memory_range> away;      ///< on the host

  [[nodiscard]] bool empty() const noexcept { return doubtful.empty() && away.empty(); }
};

/**
 * @brief That all that lives is known to be on the device, and what that hides.
 *
 * Meanwhile uses are passed over, so that blocks look as if they had been used last before it
 * began. The two atomics are read without a lock; all else belongs under the ledger's.
 */
struct confirmed_presence {
  std::atomic<bool> holds{false};            // nothing has left since `left_bytes`
  std::atomic<std::uint64_t> left_bytes{0};  // the device by then
  use_tick since{never_used};                // never_used: uses are noted
  use_tick passed_over{never_used};          // up to this use some were not noted

  /** @brief Whether uses may have been passed over since the last one that was noted. */
  [[nodiscard]] bool passes_over() const noexcept { return since != never_used; }
  /**
   * @brief Sees to it that a block that lived all the while counts as used as lately as it did
   * then.
   *
   * So those keep their order, and do not leave before what was handed out since.
   * @return whether it lived all the while
   */
  bool make_up_for(block_record& block, use_tick now) const noexcept
  {
    if (block.dead() || block.allocated > since) { return false; }
    auto const last = std::max({block.allocated, block.touched, block.prefetched});
    block.touched   = std::max(last, std::min(last, since) + (now - since));
    return true;
  }
};

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/ledger.hpp>

#include <cstddef>

namespace rmm_uvm {

/** @brief Bytes of whole blocks that a round of a program needs on the device. */
struct live_blocks {
  std::size_t now{0};
  std::size_t peak{0};  ///< the most since somebody asked before; at least `now`
};

/**
 * @brief Watches how much a round of a program needs, once somebody has asked.
 *
 * It reads blocks and changes none. Under the ledger's lock.
 */
class live_block_watch {
 public:
  /**
   * @brief After an allocation: what was allocated since the last look may have made a peak.
   * @param look_bytes it looks each time that so many are allocated
   */
  void allocated(ledger_view& view, std::size_t new_bytes, std::size_t look_bytes);
  /** @brief What is needed now, and the peak since it was taken before. @param begins a round */
  [[nodiscard]] live_blocks take(ledger_view& view, use_tick now, bool begins);
  /** @brief Looks no more until it is taken again. */
  void rest() noexcept { asked_ = false; }
  /** @brief Moves what it remembers back with the clock. */
  void turn_back(tick_shift const& shift) noexcept
  {
    shift(round_);
    shift(before_);
  }

 private:
  bool asked_{false};
  std::size_t peak_{0};             // since then
  std::size_t allocated_bytes_{0};  // since it was looked at last
  use_tick round_{never_used};      // when the last round began
  use_tick before_{never_used};     // when the one before it did
};

}  // namespace rmm_uvm

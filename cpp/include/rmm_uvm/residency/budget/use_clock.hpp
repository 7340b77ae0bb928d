// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/block_record.hpp>

namespace rmm_uvm {

/** @brief Moves moments back with their clock; the order of what is not too long ago stays. */
class tick_shift {
 public:
  /** @param by ticks, >= 0 */
  explicit tick_shift(use_tick by) noexcept : by_{by} {}

  /** @brief Moves one moment; what is longer ago than the clock goes back is the first tick. */
  void operator()(use_tick& tick) const noexcept
  {
    if (tick == never_used || tick >= unknown_use) { return; }
    tick = tick > by_ ? tick - by_ : never_used + 1;
  }

 private:
  use_tick by_;
};

/**
 * @brief The clock of uses: it ticks for every allocation and every touch.
 *
 * Before it wraps it is turned back by half of its range, and whoever keeps moments moves them
 * back with it. A plain value; whoever shares it locks the ledger.
 */
class use_clock {
 public:
  /** @param end where it is turned back; >= 2 */
  explicit use_clock(use_tick end) noexcept : end_{end} {}

  /** @brief The tick of the last use. */
  [[nodiscard]] use_tick now() const noexcept { return now_; }
  /** @brief A use. */
  void tick() noexcept { ++now_; }
  /** @brief Whether it has to be turned back before the next tick. */
  [[nodiscard]] bool is_at_its_end() const noexcept { return now_ >= end_; }
  /** @brief Turns it back. @return by which all moments that somebody keeps are to be moved */
  [[nodiscard]] tick_shift turn_back() noexcept
  {
    tick_shift const shift{now_ - end_ / 2};
    shift(now_);
    return shift;
  }

 private:
  use_tick end_;
  use_tick now_{never_used};
};

}  // namespace rmm_uvm

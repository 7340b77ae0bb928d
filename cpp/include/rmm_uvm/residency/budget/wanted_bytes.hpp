// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace rmm_uvm {

/**
 * @brief How much of a device a program wants, look by look; a pure rule.
 *
 * At once as much as lives at its peak, and an eighth more. Less by and by where less lives. A
 * program that does nothing for a while wants nothing: what it has leaves for others. If it turns
 * out to be at work after all, it is given twice as long the next time.
 */
class wanted_watch {
 public:
  using duration = std::chrono::milliseconds;
  static constexpr duration first_patience{30'000};
  static constexpr duration most_patience{3'600'000};

  /**
   * @param live_bytes the most that lived since the last look
   * @param least_bytes what a program at work wants at least
   * @param used whether it did anything since the last look
   * @param since the last look
   */
  std::size_t look(std::size_t live_bytes,
                   std::size_t least_bytes,
                   bool used,
                   duration since) noexcept
  {
    asleep_ = asleep_ && !used;
    if (asleep_) { return wanted_bytes_; }
    if (used) {
      if (idle()) { patience_ = std::min(2 * patience_, most_patience); }
      unused_ = {};
    } else {
      unused_ = std::min(unused_ + since, most_patience + duration{1});
    }
    auto const now = idle() ? 0 : std::max(live_bytes + live_bytes / spare_part, least_bytes);
    wanted_bytes_  = std::max(now, wanted_bytes_ - wanted_bytes_ / falling_part);
    return wanted_bytes_;
  }
  /** @brief It wants nothing until its next use: what it has leaves. */
  void sleep() noexcept
  {
    asleep_       = true;
    wanted_bytes_ = 0;
  }
  /** @brief Whether it does nothing. */
  [[nodiscard]] bool idle() const noexcept { return unused_ > patience_; }

 private:
  static constexpr std::size_t spare_part   = 8;
  static constexpr std::size_t falling_part = 128;  // at a look: a half is gone in 2 s

  duration patience_{first_patience};
  duration unused_{};
  std::size_t wanted_bytes_{0};
  bool asleep_{false};
};

}  // namespace rmm_uvm

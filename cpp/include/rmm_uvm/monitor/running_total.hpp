// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm::monitor {

/**
 * @brief Turns the readings of somebody else's counter into a total that begins at 0.
 *
 * A reading below the one before means that the counter was restarted (a reset device, a new
 * resource): it counts from 0 then, and the total goes on. Not thread-safe.
 */
class running_total {
 public:
  /** @brief Takes a reading; the first one is where the total begins. @return what it grew by */
  std::uint64_t add(std::uint64_t reading) noexcept
  {
    if (!begun_) { begin_at(reading); }
    auto const grown = reading >= last_ ? reading - last_ : reading;
    last_            = reading;
    total_ += grown;
    return grown;
  }
  /** @brief Lets the next reading count from `reading` on. The total stays. */
  void begin_at(std::uint64_t reading) noexcept
  {
    begun_ = true;
    last_  = reading;
  }
  /** @brief What was counted so far. */
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }

 private:
  bool begun_{false};
  std::uint64_t last_{0};
  std::uint64_t total_{0};
};

}  // namespace rmm_uvm::monitor

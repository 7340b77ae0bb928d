// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm::monitor {

/** @brief Time, injected, so that tests need not wait. Thread-safe. */
class clock {
 public:
  clock()                        = default;
  clock(clock const&)            = delete;
  clock& operator=(clock const&) = delete;
  clock(clock&&)                 = delete;
  clock& operator=(clock&&)      = delete;
  virtual ~clock()               = default;

  /** @brief Nanoseconds since an arbitrary moment; never goes back. */
  [[nodiscard]] virtual std::uint64_t now_ns() noexcept = 0;
  /**
   * @brief Sleeps until `deadline_ns` or `interrupt`.
   * @return false when interrupted
   */
  [[nodiscard]] virtual bool sleep_until(std::uint64_t deadline_ns) noexcept = 0;
  /** @brief Wakes every sleeper, now and for good. */
  virtual void interrupt() noexcept = 0;
};

}  // namespace rmm_uvm::monitor

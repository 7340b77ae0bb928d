// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace rmm_uvm::monitor {

/** @brief Time, injected, so that tests need not wait; one may serve several samplers. Thread-safe.
 */
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
   * @brief Sleeps until `deadline_ns`, or until `cancelled` is set and `wake` was called after it.
   * @return false when cancelled
   */
  [[nodiscard]] virtual bool sleep_until(std::uint64_t deadline_ns,
                                         std::atomic<bool> const& cancelled) noexcept = 0;
  /** @brief Lets every sleeper look at its `cancelled`. */
  virtual void wake() noexcept = 0;
};

}  // namespace rmm_uvm::monitor

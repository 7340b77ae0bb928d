// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/clock.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <condition_variable>
#include <mutex>

namespace rmm_uvm::monitor {

/** @brief A clock that stands still until it is advanced: for tests, and traces of given times. */
class fake_clock final : public clock {
 public:
  /** @brief Lets `ns` pass, and wakes the sleepers whose time has come. */
  void advance(std::uint64_t ns) noexcept;

  [[nodiscard]] std::uint64_t now_ns() noexcept override;
  [[nodiscard]] bool sleep_until(std::uint64_t deadline_ns,
                                 std::atomic<bool> const& cancelled) noexcept override;
  void wake() noexcept override;

 private:
  ranked_mutex<lock_rank::clock> mutex_;
  lock_condition woken_;
  std::uint64_t now_ns_{0};
};

}  // namespace rmm_uvm::monitor

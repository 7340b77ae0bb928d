// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/move_queue.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/monitor/clock.hpp>
#include <rmm_uvm/monitor/line_account.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace rmm_uvm::monitor {

/** @brief How long windows are, and how many there may be. */
struct window_settings {
  std::uint64_t length_ns{4'000'000};  ///< > 0
  std::uint64_t look_ns{10'000'000};   ///< how often the counters are looked at, > 0
  double most_fraction{0.02};          ///< of any time from one window's begin on, > 0
  std::chrono::nanoseconds patience{std::chrono::seconds{5}};  ///< with a device, at a stop
};

/** @brief What windows have seen. */
struct window_totals {
  std::uint64_t windows{0};
  std::uint64_t open_ns{0};        ///< all windows together
  std::uint64_t run_ns{0};         ///< in which there could be windows
  std::uint64_t faulted_bytes{0};  ///< that came by page faults in that time, about
  std::uint64_t seen_bytes{0};     ///< of these: that windows saw come
  std::uint64_t lost_moves{0};     ///< that there was no room for in the queue
};

/**
 * @brief Tells an account of lines what the kernel driver moves by itself, from short windows.
 *
 * A thread of its own looks at the counters. When more came or went than this driver was asked for,
 * it opens a window, and what was seen in it stands for all that moved since the last one:
 * the counters say how much that was. What was asked for is not told: that is known already.
 *
 * To be started and stopped by one thread at a time. `totals` and `refused` are thread-safe. In a
 * forked child there is no thread, and nothing else happens either.
 */
class move_windows final {
 public:
  /**
   * @param driver whose counters are looked at
   * @param queue of that driver, closed, not null
   * @param account is told
   * @param time null for the machine's clock
   */
  move_windows(std::shared_ptr<uvm_driver> driver,
               std::unique_ptr<move_queue> queue,
               std::shared_ptr<line_account> account,
               window_settings settings    = {},
               std::shared_ptr<clock> time = nullptr);
  ~move_windows();
  move_windows(move_windows const&)            = delete;
  move_windows& operator=(move_windows const&) = delete;
  move_windows(move_windows&&)                 = delete;
  move_windows& operator=(move_windows&&)      = delete;

  /** @brief Begins; nothing if it has begun, or is refused. @throws std::system_error if there is
   * no thread */
  void start();
  /** @brief Ends it, and accounts for what is left; idempotent. */
  void stop() noexcept;
  /** @brief What was seen until now. */
  [[nodiscard]] window_totals totals() const noexcept;
  /** @brief Why there are no more windows; empty while there can be. */
  [[nodiscard]] std::string refused() const;

 private:
  // NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): final, and held as itself
  class core;
  std::shared_ptr<core> core_;
};

}  // namespace rmm_uvm::monitor

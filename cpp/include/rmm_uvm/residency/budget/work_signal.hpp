// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/process/locks.hpp>

#include <condition_variable>
#include <utility>

namespace rmm_uvm {

/**
 * @brief Tells the migration thread that there may be something to do.
 *
 * All but `look` belongs under the ledger's lock. Nobody listens where there is no thread.
 */
class work_signal {
 public:
  /** @param heard a thread waits for it */
  explicit work_signal(bool heard) noexcept : heard_{heard} {}

  /** @brief Whether a thread works for this budget. */
  [[nodiscard]] bool heard() const noexcept { return heard_; }
  /** @brief There is no thread any more: in a forked child. */
  void is_not_heard() noexcept
  {
    heard_  = false;
    called_ = false;
  }
  /** @brief Calls the thread; nothing without one. */
  void call() noexcept
  {
    if (ask()) { wanted_.notify_one(); }
  }
  /** @brief Notes a call; whoever noted the first one has the thread `look`, without the lock. */
  [[nodiscard]] bool ask() noexcept { return heard_ && !std::exchange(called_, true); }
  /** @brief Has whoever waits look whether there is another reason to go on; takes no lock. */
  void look() noexcept { wanted_.notify_all(); }
  /** @brief Whether there was a call that `take` has not seen. */
  [[nodiscard]] bool called() const noexcept { return called_; }
  /** @brief Forgets the call, as its thread sets about it. */
  void take() noexcept { called_ = false; }

  /** @brief Waits for a call, or until `also` holds. */
  template <typename Lock, typename Condition>
  void wait(Lock& lock, Condition const& also)
  {
    wanted_.wait(lock, [&] { return called_ || also(); });
  }
  /** @brief The same, but not longer than `most`. */
  template <typename Lock, typename Duration, typename Condition>
  void wait_for(Lock& lock, Duration most, Condition const& also)
  {
    wanted_.wait_for(lock, most, [&] { return called_ || also(); });
  }

 private:
  lock_condition wanted_;
  bool heard_;
  bool called_{false};
};

}  // namespace rmm_uvm

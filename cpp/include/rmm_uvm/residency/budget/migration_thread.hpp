// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/process/own_thread.hpp>
#include <rmm_uvm/residency/budget/background_work.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/work_signal.hpp>
#include <rmm_uvm/residency/fork_gate.hpp>

#include <atomic>
#include <functional>

namespace rmm_uvm {

/**
 * @brief The thread that does a budget's work in the background, while there is any.
 *
 * It is in no call and holds no lock while the process forks; in the child it is not there.
 */
class migration_thread {
 public:
  /**
   * @param in_child adapts everybody else to a process without this thread; takes no lock
   */
  migration_thread(budget_ledger& ledger,
                   background_work& work,
                   work_signal& signal,
                   std::function<void()> in_child);
  migration_thread(migration_thread const&)            = delete;
  migration_thread& operator=(migration_thread const&) = delete;
  migration_thread(migration_thread&&)                 = delete;
  migration_thread& operator=(migration_thread&&)      = delete;
  /** @brief Stops it; a call under way is finished. */
  ~migration_thread();

  /** @brief Starts it. @pre it was not started */
  void start();
  /** @brief Stops it for good; a call under way is finished. Another call does nothing. */
  void stop() noexcept;
  /** @brief Waits until it has nothing to do, and no call is under way. */
  void flush() noexcept;
  /** @brief Does a piece of its work in the caller's thread. @return if there may be another one */
  bool work_here(char const* caller) noexcept;

 private:
  void run();
  [[nodiscard]] bool await_work(work_outcome before);

  budget_ledger& ledger_;
  background_work& work_;
  work_signal& signal_;
  bool working_{false};
  std::atomic<bool> stopping_{false};
  fork_gate gate_;
  own_thread thread_;  // last: it uses all of the above
};

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/process/forks.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>

namespace rmm_uvm {

/**
 * @brief Keeps a thread outside of every call and lock while its process forks.
 *
 * A child has a copy of all locks and not of the threads that would let go of them: what a thread
 * holds at a fork stays taken there, the driver's lock and malloc's among them. So a thread that
 * works on its own enters a gate, looks often whether it is closed, and stands still in front of it
 * then. All gates of a process close before `fork` and open after it, whoever calls it: see
 * `process_forks`, also for how long a fork waits.
 *
 * Thread-safe. For threads of the program see `fork_call`.
 */
class fork_gate final : private fork_participant {
 public:
  /**
   * @param call has the thread look whether the gate is closed; called by the thread that forks,
   *        again and again
   * @param in_child adapts to a process without the thread; called there, before `fork` returns
   *
   * Neither takes a lock: the thread may be in a call that hangs, and in the child another thread
   * of the program may have held it.
   */
  fork_gate(std::function<void()> call, std::function<void()> in_child);
  fork_gate(fork_gate const&)            = delete;
  fork_gate& operator=(fork_gate const&) = delete;
  fork_gate(fork_gate&&)                 = delete;
  fork_gate& operator=(fork_gate&&)      = delete;
  /** @pre the thread has left */
  ~fork_gate() = default;

  // The thread's.
  /** @brief Goes in, once the gate is open. @pre the thread holds no lock */
  void enter() noexcept;
  /** @brief Goes out. @pre the thread holds no lock */
  void leave() noexcept { inside_ = false; }
  /** @brief Whether the thread is asked to leave, and to enter again. */
  [[nodiscard]] bool closed() const noexcept { return closed_; }

  // The process' own.
  /** @brief Closes the gate and waits until the thread is outside, but not longer than `end`. */
  void close(std::chrono::steady_clock::time_point end) noexcept;
  /** @brief Opens what this thread closed. */
  void open() noexcept;

 private:
  void before_fork(std::chrono::steady_clock::time_point end) noexcept override { close(end); }
  void after_fork_in_parent() noexcept override { open(); }
  void after_fork_in_child() noexcept override;

  std::function<void()> call_;
  std::function<void()> in_child_;
  ranked_mutex<lock_rank::thread_gate> gate_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> inside_{false};
  fork_participation forks_{fork_turn::gates, *this};
};

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/address_space_counters.hpp>
#include <rmm_uvm/cuda/system_calls.hpp>
#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace rmm_uvm::cuda {

class process_counters;

/** @brief Counters of another process, or why there are none. */
struct opened_process_counters {
  std::unique_ptr<process_counters> counters;  ///< null when not opened
  availability opened;
};

/** @brief Which process is watched, and how. */
struct process_counters_request {
  int pid{0};                             ///< of any process that this one may trace
  processor_id processor = std::nullopt;  ///< a GPU, or all together
  bool faults{false};  ///< count faults too: a program that only faults takes up to 10 % longer
};

/**
 * @brief The counters of any CUDA process that this one may trace: it need not know of it.
 *
 * Copies the process' /dev/nvidia-uvm descriptors (pidfd_getfd, Linux 5.6) and opens a tracker on
 * each that the kernel driver accepts. Creates no CUDA context. It has to be told of the process'
 * end, by `wait_exit`, soon: a tracker keeps the device memory of a process that has ended.
 *
 * Totals count from the moment of opening. Thread-safe; `read` takes a lock that nobody holds for
 * long. In a forked child totals read as zeros.
 */
class process_counters final : public migration_counters {
 public:
  /** @brief Attaches. @param system kept */
  [[nodiscard]] static opened_process_counters open(
    process_counters_request const& request,
    std::shared_ptr<system_calls> system = linux_system_calls());

  /** @brief Whether counting goes on: not after the process has ended or `close`. */
  [[nodiscard]] availability available() const override;
  /** @brief Totals since opening; after the end, the last ones. */
  [[nodiscard]] migration_totals read() const noexcept override;
  /** @brief Whether the process has ended, as far as `wait_exit` has seen. */
  [[nodiscard]] bool exited() const noexcept;
  /**
   * @brief Waits for the process to end; when it has, lets go of it at once.
   * @param timeout_ms 0 only looks; a signal may end the wait early
   * @return whether it has ended
   */
  [[nodiscard]] bool wait_exit(int timeout_ms) noexcept;
  /** @brief Lets go of the process; totals stay readable. Idempotent. */
  void close() noexcept;

 private:
  using trackers = std::vector<std::unique_ptr<address_space_counters>>;

  process_counters(std::shared_ptr<system_calls> system,
                   int pid,
                   std::shared_ptr<descriptor const> process,
                   trackers attached);
  void let_go() noexcept;

  std::shared_ptr<system_calls> system_;
  int pid_;
  int owner_;  // the process that attached
  mutable ranked_mutex<lock_rank::counters> mutex_;
  std::shared_ptr<descriptor const> process_;  // shared with whoever waits on it
  trackers attached_;
  migration_totals last_;
  bool exited_{false};
};

/**
 * @brief Whether `process_counters` may attach to a process; opens no tracker.
 * @param pid the process
 */
[[nodiscard]] availability may_attach(
  int pid, std::shared_ptr<system_calls> const& system = linux_system_calls());

}  // namespace rmm_uvm::cuda

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/sampler.hpp>
#include <rmm_uvm/process/forks.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/process/own_thread.hpp>
#include <rmm_uvm/process/process_mark.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace rmm_uvm::monitor {

/**
 * @brief What the sampler and its thread share: both keep it, so that either may go first.
 *
 * Lock order: `lifecycle_mutex_`, `mutex_`. No source is asked under `mutex_`, so that readers
 * never wait for a device; nor is Python's lock taken under it, which a thread that forks may hold.
 */
class sampler::core final : public std::enable_shared_from_this<sampler::core>,
                            private fork_participant {
 public:
  core(std::vector<slot_settings> slots, sampler_settings settings, std::shared_ptr<clock> time);

  void start();
  void stop() noexcept;
  [[nodiscard]] bool tick() noexcept;
  [[nodiscard]] bool tick(std::uint64_t& deadline_ns) noexcept;  // and sets the next deadline
  [[nodiscard]] bool forked() const noexcept { return !process_.here(); }
  [[nodiscard]] bool running() const noexcept;
  [[nodiscard]] slot* find(int device_id) const noexcept;
  [[nodiscard]] availability faults(int device_id) const;
  [[nodiscard]] std::size_t count(std::uint64_t since) const noexcept;
  [[nodiscard]] ring_read read(std::uint64_t since, std::span<sample> into) const noexcept;
  [[nodiscard]] std::uint64_t next_sequence() const noexcept;
  [[nodiscard]] bool wait(std::uint64_t sequence, std::chrono::nanoseconds timeout) const noexcept;
  [[nodiscard]] std::uint64_t cost_ns() const noexcept { return cost_ns_; }
  /** @brief Lets it live for good, with its thread's locks: for a child of a fork. */
  void abandon() noexcept { itself_ = shared_from_this(); }

 private:
  struct run {  // from a start to a stop
    std::atomic<bool> cancelled{false};
    bool ended{false};  // guarded by mutex_
  };

  void before_fork(std::chrono::steady_clock::time_point end) noexcept override;
  void after_fork_in_parent() noexcept override { mutex_.unlock(); }
  void after_fork_in_child() noexcept override { mutex_.unlock(); }
  void loop(run& mine, std::uint64_t deadline_ns) noexcept;
  void start_thread(std::uint64_t deadline_ns);
  void release_faults() noexcept;
  [[nodiscard]] std::uint64_t after(std::uint64_t deadline_ns, std::uint64_t now_ns) const noexcept;
  [[nodiscard]] std::unique_lock<ranked_mutex<lock_rank::sampler>> lock_to_read() const noexcept;

  std::shared_ptr<core> itself_;  // only once abandoned
  std::vector<std::unique_ptr<slot>> slots_;
  sampler_settings const settings_;
  std::shared_ptr<clock> const clock_;
  process_mark const process_;
  std::atomic<std::uint64_t> cost_ns_{0};

  ranked_mutex<lock_rank::sampler_lifecycle> lifecycle_mutex_;  // starting and stopping
  own_thread thread_;
  std::shared_ptr<run> run_;

  mutable ranked_mutex<lock_rank::sampler> mutex_;  // everything below
  mutable lock_condition changed_;
  sample_ring ring_;
  std::vector<availability> faults_;  // one a slot
  std::vector<sample> taken_;         // one a slot; belongs to whoever set ticking_
  std::uint64_t began_ns_{0};
  bool began_{false};
  bool ticking_{false};
  bool running_{false};

  fork_participation forks_{fork_turn::samplers, *this};
};

}  // namespace rmm_uvm::monitor

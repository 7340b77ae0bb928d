// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/process/forks.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>

namespace rmm_uvm::ipc {

/**
 * @brief A descriptor that a forked child of this process closes before it does anything else.
 *
 * The child would keep the locks of its parent's open file, and say that the parent lives when it
 * does no more.
 */
class forgotten_descriptor final : private fork_participant {
 public:
  explicit forgotten_descriptor(int descriptor) noexcept : descriptor_{descriptor} {}
  ~forgotten_descriptor()
  {
    if (here()) { ::close(get()); }
  }
  forgotten_descriptor(forgotten_descriptor const&)            = delete;
  forgotten_descriptor& operator=(forgotten_descriptor const&) = delete;
  forgotten_descriptor(forgotten_descriptor&&)                 = delete;
  forgotten_descriptor& operator=(forgotten_descriptor&&)      = delete;

  /** @brief The descriptor; -1 in a child. */
  [[nodiscard]] int get() const noexcept { return descriptor_.load(); }
  /** @brief Whether this is the process that made it. */
  [[nodiscard]] bool here() const noexcept { return get() >= 0; }

 private:
  void before_fork(std::chrono::steady_clock::time_point /*end*/) noexcept override {}
  void after_fork_in_parent() noexcept override {}
  void after_fork_in_child() noexcept override { ::close(descriptor_.exchange(-1)); }

  std::atomic<int> descriptor_;
  fork_participation forks_{fork_turn::descriptors, *this};
};

}  // namespace rmm_uvm::ipc

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/process/own_thread.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace rmm_uvm {

/** @brief Bytes of all of them together. */
[[nodiscard]] std::size_t bytes_of(std::span<memory_range const> ranges) noexcept;

/** @brief Appends a range in pieces that end with blocks, each of at most `most_bytes` or a block.
 */
void cut(std::vector<memory_range>& pieces, memory_range range, std::size_t most_bytes);

/**
 * @brief Threads that help to move pieces: what bounds one thread is the driver's work on its
 * processor.
 *
 * They are started when they are first needed, and wait otherwise. Thread-safe: several callers
 * share them.
 */
class piece_movers {
 public:
  /** @brief Moves one piece; called by several threads at once, must not throw. */
  using move_one = std::function<status(memory_range)>;

  /** @param helpers threads beside the caller's, at most */
  explicit piece_movers(std::size_t helpers) : most_helpers_{helpers} {}
  piece_movers(piece_movers const&)            = delete;
  piece_movers& operator=(piece_movers const&) = delete;
  piece_movers(piece_movers&&)                 = delete;
  piece_movers& operator=(piece_movers&&)      = delete;
  /** @pre nobody moves anything any more */
  ~piece_movers();

  /**
   * @brief Moves all pieces, in any order; the caller's thread takes part.
   * @param most_at_once threads for this list, the caller's among them; >= 1
   * @return the first failure, after which no piece was begun
   */
  status move_all(std::span<memory_range const> pieces,
                  std::size_t most_at_once,
                  move_one const& move) noexcept;

  /** @brief In a forked child, where no helper is: callers move their pieces alone, without a lock.
   */
  void work_alone() noexcept { most_helpers_ = 0; }

 private:
  struct job {
    std::span<memory_range const> pieces;
    move_one const* move{nullptr};
    std::size_t wanted{0};   // helpers that may still join
    std::size_t helping{0};  // that are at it
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    status failure;
    job* after{nullptr};
  };

  static void work_on(job& one) noexcept;
  void help();
  void start(std::size_t helpers) noexcept;
  void close(job const& one) noexcept;

  std::size_t most_helpers_;
  ranked_mutex<lock_rank::pieces> mutex_;
  lock_condition wanted_;
  lock_condition left_;
  job* open_{nullptr};  // the first of those that helpers may join
  bool stopping_{false};
  std::vector<own_thread> threads_;
};

}  // namespace rmm_uvm

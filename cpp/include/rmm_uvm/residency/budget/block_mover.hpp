// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/memory_adviser.hpp>
#include <rmm_uvm/residency/piece_movers.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>

#include <atomic>
#include <cstddef>

namespace rmm_uvm {

/**
 * @brief Moves ranges, in pieces, by several threads, past libcuda where that works; and discards.
 *
 * It commands the driver and knows no blocks: whoever calls it has marked them busy. Without the
 * ledger's lock, which it takes to count a failure.
 */
class block_mover {
 public:
  // Threads that move pieces of one list: more are no faster (measured, see `move_all`). Of those
  // that evict the driver says how many.
  static constexpr std::size_t fetching_movers      = 2;  ///< from one place
  static constexpr std::size_t most_fetching_movers = 4;  ///< from all places together

  /** @param adviser of the same blocks; null: nobody advises */
  block_mover(uvm_driver& driver,
              residency_settings const& settings,
              budget_ledger& ledger,
              memory_adviser* adviser) noexcept;

  /** @brief Whether migrations to a place go past libcuda. */
  [[nodiscard]] bool moves_directly(location where) const noexcept
  {
    return settings_.direct && driver_.migrates_to(where);
  }
  /** @brief Whether users have advised about any block: then all leave to the host. */
  [[nodiscard]] bool any_advised() const noexcept
  {
    return adviser_ != nullptr && adviser_->advised_bytes() > 0;
  }

  /**
   * @brief Moves ranges, and as much of them at once as is faster.
   *
   * What bounds one thread past libcuda is the driver's work on the processor: measured
   * (benchmarks/driver/migration_threads.py, H100), 8 threads evict at 4.3 times the rate of one, 2
   * fetch at 1.3 times. Where pages come by faults one moves all, as in the kernel driver.
   * @param[in,out] moved_bytes what has been asked for is added
   * @return the first failure, after which nothing was begun
   */
  status move_all(range_list ranges,
                  location where,
                  stream_handle stream,
                  std::atomic<std::size_t>& moved_bytes) noexcept;
  /** @brief Has several threads move pieces; as many as the driver does not play out itself. */
  status move_together(range_list pieces,
                       std::size_t threads,
                       piece_movers::move_one const& move) noexcept;
  /** @brief Moves a range, past libcuda where that works; else in the order of `stream`. */
  status move_now(memory_range range, location where, stream_handle stream) noexcept;

  /**
   * @brief Has ranges leave.
   * @param advised users have advised about some: they go to the host, as advised
   */
  status send(range_list ranges, location where, stream_handle stream, bool advised) noexcept;
  /** @brief Moves ranges to the host, and returns when they have arrived. */
  status to_host_now(range_list ranges) noexcept;
  /**
   * @brief Discards what was freed, once the work before it is done.
   * @param frees_are_done that work is known to be done; else that before every free is awaited
   */
  status discard(range_list ranges, bool frees_are_done) noexcept;

  /** @brief In a forked child, where no helper is. Takes no lock. */
  void work_alone() noexcept { movers_.work_alone(); }

 private:
  uvm_driver& driver_;
  residency_settings const& settings_;
  budget_ledger& ledger_;
  memory_adviser* adviser_;
  piece_movers movers_;
};

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/ledger.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace rmm_uvm {

/** @brief What a user wants the driver to be told; what is not set is left as it is. */
struct advice_change {
  std::optional<bool> read_mostly;
  std::optional<preferred_place> preferred;
};

/** @brief What came of `memory_adviser::advise`. */
struct advice_outcome {
  std::size_t whole_bytes{0};    ///< of the blocks that lie wholly in the range
  std::size_t advised_bytes{0};  ///< of those, what the driver took the advice about
  status failure;                ///< what it answered where it did not
};

/** @brief What came of `memory_adviser::to_host`. */
struct departure {
  status moved;    ///< of the moves
  status advised;  ///< of the advice about what left, which is lost where this is a failure
  status direct;   ///< of a move past libcuda that a prefetch has made up for
};

/**
 * @brief Tells the driver what users advise, and takes it back in time.
 *
 * Advice is about addresses, and a pool hands addresses out again: so it is about whole blocks of
 * one user, which the ledger remembers, and is taken back when any of a block is freed. Advising
 * loses no data, whenever it happens; what is forgotten here would slow a stranger down.
 *
 * Thread-safe; never throws. While nothing is advised, `take_back` and `to_host` take no lock.
 */
class memory_adviser {
 public:
  /**
   * @param driver what is told
   * @param ledger remembers what was told; outlives this object
   */
  memory_adviser(std::shared_ptr<uvm_driver> driver, residency_ledger& ledger);

  /**
   * @brief Advises the driver about the blocks of 2 MiB that lie wholly in `range`.
   *
   * Where it refuses anything, all that was advised about these blocks is taken back.
   * @param range live memory of one user
   */
  advice_outcome advise(memory_range range, advice_change change) noexcept;

  /** @brief Takes back what was advised about blocks that `range` touches. @return a failure */
  status take_back(memory_range range) noexcept;

  /**
   * @brief Tells the driver once more what is advised about blocks of a range.
   *
   * For who advised something of its own about them, and ended it. @return a failure
   */
  status tell_again(memory_range range) noexcept;

  /** @brief Forgets what was advised in a slab that goes back to the driver, and so its advice. */
  void forget(memory_range slab) noexcept;

  /**
   * @brief Moves ranges to the host in the order of `stream`, and leaves no copy on the device.
   *
   * A prefetch of what is read mostly copies and does not move. So that advice is taken back before
   * and given anew afterwards, for which this waits for `stream`. What has a copy on the host is
   * not copied, unless it belongs to the device.
   * @param ranges each in one slab
   * @param directly past libcuda, and then in no stream's order: where the driver can
   */
  departure to_host(std::span<memory_range const> ranges,
                    stream_handle stream,
                    bool directly = false) noexcept;

  /** @brief The parts of `range` that a touch shall bring in: not what is used on the host. */
  [[nodiscard]] std::vector<memory_range> without_used_on_host(memory_range range);

  /** @brief Bytes of the blocks that something is advised about; a load. */
  [[nodiscard]] std::size_t advised_bytes() const noexcept
  {
    return advised_blocks_.load(std::memory_order_acquire) * va_block_bytes;
  }

 private:
  [[nodiscard]] status tell(memory_range blocks, advice_change change) noexcept;
  [[nodiscard]] status take_back_blocks(memory_range range);
  [[nodiscard]] std::vector<memory_range> read_mostly_runs(memory_range range);
  void note(memory_range blocks, advice_change change) noexcept;

  std::shared_ptr<uvm_driver> driver_;
  residency_ledger& ledger_;
  ranked_mutex<lock_rank::advice>
    telling_;  // what the ledger says is what the driver knows; taken before its lock
  std::atomic<std::size_t> advised_blocks_{0};
};

}  // namespace rmm_uvm

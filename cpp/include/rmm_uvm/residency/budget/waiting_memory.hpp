// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/budget_follower.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/moved_account.hpp>
#include <rmm_uvm/residency/budget/presence.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/**
 * @brief New memory that outruns the device waits for its first use.
 *
 * A program may allocate all that it needs, and write it later. What was handed out and not used
 * must not leave for what was not used either: the program is about to write both. So once more new
 * memory came than the budget holds, with no sign of a use in between, the next stays without pages
 * and does not count. An announced use brings it. Its first write makes its pages on the device,
 * for which the kernel driver makes room: as many bytes leave unasked. Only where a budget follows
 * what others leave of the device, and shares it with no other budget: elsewhere what is written
 * beside it would stay there. Under the ledger's lock.
 */
class waiting_memory {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver const& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    use_clock const& clock;
    moved_account& moved;
    presence& present;
    budget_follower const& follower;
  };
  explicit waiting_memory(parts const& all) noexcept : with_{all} {}

  /** @brief The program uses what it has: a use was announced, or memory is handed out anew. */
  void note_use() noexcept { unused_bytes_ = 0; }
  /** @brief So much new memory comes for an allocation. */
  void note_new(std::size_t bytes) noexcept { unused_bytes_ += bytes; }
  /** @brief Takes new blocks off an allocation that does not fit, the last first, if they wait. */
  void let_wait(ledger_view& view, claim_list& missing);
  /**
   * @brief Counts what waits as on the device: as much of it as bytes left unasked.
   * @return whether any did
   */
  bool count_written(ledger_view& view);

 private:
  [[nodiscard]] std::size_t reserve_bytes() const noexcept;
  [[nodiscard]] bool may_wait() const;

  parts with_;
  bool any_wait_{false};
  std::uint64_t left_bytes_{0};  // unasked, as of the last look
  std::size_t beside_bytes_{0};  // can be written beside the budget before any leave
  std::size_t unused_bytes_{0};  // of new memory that came since the last sign of a use
};

}  // namespace rmm_uvm

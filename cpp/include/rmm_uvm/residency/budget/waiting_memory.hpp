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
 * memory came than the budget holds, and none of it is known to be used, the next stays without
 * pages and does not count. An announced use brings it. Its first write makes its pages on the
 * device, for which the kernel driver makes room: as many bytes leave unasked.
 *
 * Whether new memory is used is seen by a witness: one page of it is not prefetched, so that its
 * first write is a page fault of the device, and faults are counted while there is such a page.
 * Without a witness nothing waits. Only where a budget follows what others leave of the device, and
 * shares it with no other budget: elsewhere what is written beside it would stay there. Under the
 * ledger's lock.
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
  waiting_memory(waiting_memory const&)            = delete;
  waiting_memory& operator=(waiting_memory const&) = delete;
  waiting_memory(waiting_memory&&)                 = delete;
  waiting_memory& operator=(waiting_memory&&)      = delete;
  ~waiting_memory() { note_use(); }

  /** @brief The program uses what it has: a use was announced, or a kernel wrote the witness. */
  void note_use() noexcept;
  /** @brief An allocation goes: what is in it is used no more. */
  void note_free(memory_range allocation) noexcept;
  /**
   * @brief Blocks come for an allocation.
   * @return a page of it to leave without memory, as a witness; empty for none
   */
  [[nodiscard]] memory_range note_new(ledger_view& view,
                                      claim_list const& coming,
                                      memory_range allocation);
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
  void look_at_witness(ledger_view& view) noexcept;
  void end_witness() noexcept;

  parts with_;
  memory_range witness_{};   // a page of new memory that has no memory yet; empty for none
  std::uint64_t faults_{0};  // of the device, when it was chosen
  bool any_wait_{false};
  std::uint64_t left_bytes_{0};  // unasked, as of the last look
  std::size_t beside_bytes_{0};  // can be written beside the budget before any leave
  std::size_t unused_bytes_{0};  // of new memory that came since the last sign of a use
};

}  // namespace rmm_uvm

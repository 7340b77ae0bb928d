// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/room_maker.hpp>
#include <rmm_uvm/residency/budget/work_outcome.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/**
 * @brief Has the host get its copy of what is going to leave, before it has to: see `kept_copies`.
 *
 * The block stays, and can be read meanwhile; whoever may write it, frees it or sends it away
 * waits. When it leaves, nothing is copied, but for what was written unannounced since.
 */
class early_copies {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    use_clock const& clock;
    moved_account& moved;
    stream_marks const& marks;
    use_learner const& uses;
    block_mover& mover;
    neighbor_memory const& neighbors;
    kept_copies& copies;
    room_maker const& room;
  };
  explicit early_copies(parts const& all) noexcept : with_{all} {}

  /** @brief Whether they can be made, and are of use. */
  [[nodiscard]] bool pay() noexcept;
  /**
   * @brief Copies some of what leaves first, as far as it is only read and no work uses it now.
   * @param leaving_bytes so much has to leave soon; what has a copy already counts
   */
  [[nodiscard]] work_outcome copy(ledger_view& view, std::size_t leaving_bytes);
  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept { told.copied_early_bytes = copied_bytes_; }

 private:
  [[nodiscard]] status make(range_list ranges) noexcept;
  void settle(ledger_view& view, block_list const& blocks, range_list lacking, bool written);

  parts with_;
  int failures_{0};  // in turn: the driver makes no such copies, or they cannot be seen
  std::uint64_t copied_bytes_{0};
};

}  // namespace rmm_uvm

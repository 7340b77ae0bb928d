// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/beside_advice.hpp>
#include <rmm_uvm/residency/budget/room_maker.hpp>
#include <rmm_uvm/residency/budget/work_outcome.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmm_uvm {

/**
 * @brief Decides what is used where it lies on a neighbour, and what gets a copy on the host.
 *
 * It has the driver map and copy, and writes that down in the blocks. `choose` takes the ledger's
 * lock; both give it up during calls, with the blocks marked busy.
 */
class in_place_uses {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    use_clock const& clock;
    use_learner const& uses;
    block_mover& mover;
    neighbor_memory& neighbors;
    beside_advice& advice;
    room_maker const& room;
  };
  explicit in_place_uses(parts const& all) noexcept : with_{all} {}

  /** @brief Decides which of the blocks that lie on neighbours are used there. */
  void choose(range_list wanted);
  /** @brief Copies a piece of what lies unused on a neighbour to the host; it stays as well. */
  [[nodiscard]] work_outcome copy_beside(ledger_view& view);
  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept
  {
    told.copied_beside_bytes = copied_beside_bytes_;
  }

 private:
  void change_mappings(ledger_view& view, block_list const& mapping, block_list const& unmapping);
  [[nodiscard]] std::optional<use_tick> first_to_leave(ledger_view& view, std::size_t bytes) const;

  parts with_;
  bool copies_beside_{true};  // until a copy beside fails
  std::uint64_t copied_beside_bytes_{0};
};

}  // namespace rmm_uvm

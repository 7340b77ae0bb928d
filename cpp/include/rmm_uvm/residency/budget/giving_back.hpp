// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/arrivals.hpp>
#include <rmm_uvm/residency/budget/work_outcome.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Has blocks leave neighbours: their owners need the memory, or users advised about them.
 *
 * They are dropped, keep the copy that the host has, go to the host, or come home where they are
 * pinned. Whoever calls it has the ledger's lock, except for `on_advised`; it gives that up during
 * calls, with the blocks marked busy.
 */
class giving_back {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    use_clock const& clock;
    moved_account& moved;
    presence& present;
    stream_marks const& marks;
    use_learner const& uses;
    block_mover& mover;
    neighbor_memory& neighbors;
    beside_advice& advice;
    arrivals& coming;
  };
  explicit giving_back(parts const& all) noexcept : with_{all} {}

  /** @brief Has some of what a neighbour's owner wants back leave it. */
  [[nodiscard]] work_outcome give_back(ledger_view& view);
  /** @brief Has everything leave all neighbours, with its contents. */
  void give_all_back(ledger_view& view);
  /**
   * @brief A user has advised about a range: what of it lies on neighbours leaves for the host.
   *
   * Advice of ours stands beside a user's there, for copies and mappings, and would end with it or
   * end it; and what belongs elsewhere must not lie there. Takes the lock.
   */
  void on_advised(memory_range range);

 private:
  /** @brief How a block leaves a neighbour; for its owner in this order. */
  enum class departure : std::uint8_t { dropped, has_copy, copied_now, advised };

  [[nodiscard]] bool leave_neighbor(ledger_view& view,
                                    std::size_t number,
                                    std::size_t bytes,
                                    departure first);
  [[nodiscard]] bool come_home(ledger_view& view,
                               std::size_t number,
                               std::vector<memory_range> const& ranges);
  [[nodiscard]] bool go(ledger_view& view,
                        std::size_t number,
                        block_list const& blocks,
                        departure kind);

  parts with_;
};

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What becomes of a request that is larger than the budget.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <vector>

namespace rmm_uvm {

/**
 * @brief A request larger than the budget: the ranges that fit together, the first ones first.
 *
 * The others would drive out what the same work is about to use: they are left to page faults.
 */
void residency_manager::bring_in_parts(range_list wanted,
                                       memory_range allocation,
                                       stream_handle stream,
                                       reason why)
{
  std::vector<memory_range> together;
  std::size_t together_bytes = 0;
  for (auto const& range : wanted) {
    auto const bytes = bytes_of_blocks(range);
    if (together_bytes + bytes <= budget_bytes()) {
      together.push_back(range);
      together_bytes += bytes;
    } else {
      leave_discarded(range);
    }
  }
  if (together.size() < wanted.size()) { bring(together, allocation, stream, why); }
}

/** @brief What was discarded of a range is its user's from now on, and comes by page faults. */
void residency_manager::leave_discarded(memory_range range) noexcept
{
  ledger_view view{ledger_};
  wait_until_free(view, {&range, 1});
  view.each(range, [](block_record& block, memory_range) { block.discarded = false; });
}

}  // namespace rmm_uvm

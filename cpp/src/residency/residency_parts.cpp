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
    if (together_bytes + bytes <= settings_.budget_bytes) {
      together.push_back(range);
      together_bytes += bytes;
    } else {
      await_discards(range);
    }
  }
  if (together.size() < wanted.size()) { bring(together, allocation, stream, why); }
}

void residency_manager::await_discards(memory_range range) noexcept
{
  bool pending = false;
  ledger_view view{ledger_};
  wait_until_free(view, {&range, 1});
  view.each(range,
            [&](block_record const& block, memory_range) { pending = pending || block.discarded; });
  if (!pending) { return; }
  // Others who want a part of these blocks wait too: what is discarded is not theirs yet.
  view.each(range, [](block_record& block, memory_range) { block.busy = true; });
  view.lock().unlock();
  stream_handle discards = nullptr;
  if (driver_->own_stream(own_stream_use::discards, discards).ok()) {
    static_cast<void>(driver_->synchronize(discards));
  }
  view.lock().lock();
  view.each(range, [](block_record& block, memory_range) {
    block.busy      = false;
    block.discarded = false;
  });
  changed_.notify_all();
}

}  // namespace rmm_uvm

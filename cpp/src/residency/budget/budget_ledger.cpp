// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/budget_ledger.hpp>

#include <algorithm>

namespace rmm_uvm {

void budget_ledger::has_room(std::size_t bytes) noexcept
{
  without_room_bytes_ -= bytes;
  // What comes for another request is not there yet.
  peak_resident_bytes_ = std::max(peak_resident_bytes_, there_bytes());
}

void budget_ledger::adopt(std::size_t bytes) noexcept
{
  resident_bytes_ += bytes;
  assumed_bytes_ += bytes;
  peak_resident_bytes_ = std::max(peak_resident_bytes_, resident_bytes_);
}

void budget_ledger::pin(ledger_view& view, memory_range range)
{
  wait_until_free(view, {&range, 1});
  if (ended_) { return; }
  view.each(range, [&](block_record& block, memory_range whole) {
    if (block.pins++ == 0) { pinned_bytes_ += whole.bytes; }
  });
}

void budget_ledger::unpin(ledger_view& view, memory_range range, use_tick now)
{
  if (ended_) { return; }
  view.change(range, now, [&](block_record& block, memory_range whole) {
    if (block.pins == 0) { return; }
    --block.pins;
    if (block.pins == 0) { pinned_bytes_ -= whole.bytes; }
  });
}

void budget_ledger::wait_until_free(ledger_view& view, range_list wanted, bool to_read)
{
  for (bool waited = false;; waited = true) {
    bool busy = false;
    for (auto const& range : wanted) {
      busy = busy || is_under_way(view, range, to_read);
    }
    // Once this budget is closed another may be at a block: that one drops nothing handed out.
    if (!busy || closed_) { return; }
    if (!waited) { ++waits_; }
    changed_.wait(view.lock());
  }
}

void budget_ledger::count_failure(status failure) noexcept
{
  ++failed_calls_;
  last_failure_ = failure;
}

void budget_ledger::count_unread(status answer) noexcept
{
  if (answer.code != status_code::not_supported) { count_if_failed(answer); }
}

void budget_ledger::count_no_memory(char const* where) noexcept
{
  ledger_view const view{blocks_};
  count_failure({status_code::out_of_memory, 0, where});
}

void budget_ledger::tell(residency_statistics& told) const noexcept
{
  told.budget_bytes = budget_bytes();
  // What is to come once others have left is not there yet.
  told.resident_bytes      = there_bytes();
  told.peak_resident_bytes = peak_resident_bytes_;
  told.pinned_bytes        = pinned_bytes_;
  told.waits               = waits_;
  told.over_budget         = over_budget_;
  told.failed_calls        = failed_calls_;
  told.last_failure        = last_failure_;
}

}  // namespace rmm_uvm

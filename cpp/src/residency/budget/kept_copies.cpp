// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/kept_copies.hpp>

namespace rmm_uvm {

bool kept_copies::begin(range_list ranges) noexcept
{
  status failure;
  for (auto const& range : ranges) {
    if (failure.ok()) {
      failure = with_.driver.advise(range, memory_advice::read_mostly, location::host());
    }
  }
  if (failure.ok()) { return true; }
  keeps_ = false;  // what failed would be tried again and again
  static_cast<void>(leave_to_host(ranges));
  ledger_view const view{with_.ledger.blocks()};
  with_.ledger.count_failure(failure);
  return false;
}

std::vector<memory_range> kept_copies::written(range_list ranges) noexcept
{
  std::vector<memory_range> found;
  for (auto const& range : ranges) {
    if (!with_.driver.not_on_host(range, found).ok()) { return {}; }
  }
  return found;
}

status kept_copies::leave_to_host(range_list ranges) noexcept
{
  return with_.advice.leave_one_copy(ranges, location::host());
}

void kept_copies::note_kept(block_record& block, memory_range whole) noexcept
{
  block.copied = true;
  kept_bytes_ += whole.bytes;
  awaited_bytes_ += whole.bytes;
}

void kept_copies::note_left(block_record& block, memory_range whole) noexcept
{
  if (block.early) { worth_.was_of_use(whole.bytes); }
  block.early = false;
  note_ended(block, whole);
}

void kept_copies::note_ended(block_record& block, memory_range whole) noexcept
{
  if (!block.copied || block.place != block_place::device) { return; }
  if (block.early) { worth_.was_in_vain(whole.bytes); }
  block.early  = false;
  block.copied = false;
  kept_bytes_ -= whole.bytes;
}

void kept_copies::end_here(ledger_view& view, range_list ranges) noexcept
try {
  if (!any() || ranges.empty()) { return; }
  with_.ledger.wait_until_free(view, ranges);
  block_list ending;
  for (auto const& range : ranges) {
    view.each(range, [&](block_record& block, memory_range whole) {
      if (block.copied && block.place == block_place::device) { ending.push_back({&block, whole}); }
    });
  }
  end_here(view, ending);
} catch (...) {  // they stay as they are: slow to write, and right
  with_.ledger.count_failure({status_code::out_of_memory, 0, "kept_copies"});
}

void kept_copies::end_all(ledger_view& view)
{
  if (!any()) { return; }
  block_list ending;
  view.each([&](block_record& block, memory_range whole) {
    if (block.copied && block.place == block_place::device) { ending.push_back({&block, whole}); }
  });
  end_here(view, ending);
}

void kept_copies::end_here(ledger_view& view, block_list& blocks)
{
  if (blocks.empty()) { return; }
  make_distinct(blocks);
  auto const ranges = joined(view, blocks, any_length);
  set_busy(blocks, true);  // from here on nothing takes memory
  view.unlock();
  auto const here   = location::device(with_.driver.info().device_id);
  auto const result = with_.advice.leave_one_copy(ranges, here);
  view.relock();
  with_.ledger.count_if_failed(result);
  set_busy(blocks, false);
  for (auto const& each : blocks) {
    if (result.ok()) { note_ended(*each.record, each.range); }
  }
  with_.ledger.tell_change();
}

}  // namespace rmm_uvm

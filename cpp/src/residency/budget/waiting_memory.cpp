// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/waiting_memory.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

// Of the device: a budget that leaves more of it is not all but a reserve, which is half as much.
constexpr std::size_t reserve_part = 16;
// Of a budget: so little that left is not counted, as what comes unseen is not looked for.
constexpr std::size_t unlooked_part = 256;

}  // namespace

/** @brief What the budget leaves of the device, where nobody else has any of it. */
std::size_t waiting_memory::reserve_bytes() const noexcept
{
  auto const device_bytes = with_.driver.info().total_bytes;
  return device_bytes - std::min(device_bytes, with_.settings.followed_bytes);
}

/**
 * @brief Whether the budget is what others leave of the whole device, and no other budget's; and
 * what is written can be noticed.
 */
bool waiting_memory::may_wait() const
{
  return with_.settings.fetch &&
         reserve_bytes() <= with_.driver.info().total_bytes / reserve_part &&
         !with_.follower.shares() && with_.driver.counters().available().available;
}

void waiting_memory::let_wait(ledger_view& view, claim_list& missing)
{
  count_written(view);  // the thread may not have looked since
  auto const budget_bytes = with_.ledger.budget_bytes();
  auto const coming_bytes = uncounted_bytes(missing);
  auto const all_bytes    = with_.ledger.resident_bytes() + coming_bytes;
  bool const outruns      = unused_bytes_ + coming_bytes > budget_bytes;
  if (all_bytes <= budget_bytes || !outruns || !may_wait()) { return; }
  auto beyond_bytes = all_bytes - budget_bytes;
  for (auto each = missing.rbegin(); each != missing.rend() && beyond_bytes > 0; ++each) {
    auto& block = *each->record;
    if (!block.is_new()) { continue; }
    block.waits = true;
    with_.ledger.has_chunk(block, each->range.bytes);
    beyond_bytes -= std::min(beyond_bytes, each->range.bytes);
  }
  auto const waiting = std::erase_if(missing, [](auto const& each) { return each.record->waits; });
  if (waiting == 0) { return; }
  with_.present.send_away(view);
  if (any_wait_) { return; }
  any_wait_     = true;
  left_bytes_   = with_.moved.left_unasked_bytes();
  beside_bytes_ = reserve_bytes();
}

bool waiting_memory::count_written(ledger_view& view)
{
  if (!any_wait_) { return false; }
  auto const left_bytes = with_.moved.left_unasked_bytes() - left_bytes_;
  if (left_bytes <= with_.ledger.budget_bytes() / unlooked_part) { return false; }
  note_use();
  left_bytes_ += left_bytes;
  with_.moved.made(left_bytes);
  auto written_bytes = left_bytes + std::exchange(beside_bytes_, 0);
  auto const now     = with_.clock.now();
  view.each([&](block_record& block, memory_range whole) {  // which were written nobody knows
    if (!block.waits || written_bytes == 0) { return; }
    written_bytes -= std::min<std::uint64_t>(written_bytes, whole.bytes);
    block.waits           = false;
    block.place           = block_place::device;
    block.on_device_as_of = 0;
    block.arrived         = now;
    with_.ledger.comes(whole.bytes);
    with_.ledger.has_room(whole.bytes);
    with_.ledger.left_to_faults(whole.bytes);
    view.change({whole.address, 1}, now, [](block_record&, memory_range) {});
  });
  any_wait_ = written_bytes == 0;
  return true;
}

}  // namespace rmm_uvm

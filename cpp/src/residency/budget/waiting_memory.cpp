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
// Of a budget: so much new memory has a witness.
constexpr std::size_t witnessed_part = 3;

/** @brief The first whole page of an allocation in a block; empty for none. */
[[nodiscard]] memory_range first_page(memory_range allocation, memory_range block) noexcept
{
  auto const begin = std::max(allocation.address, block.address);
  memory_range const page{(begin + page_bytes - 1) / page_bytes * page_bytes, page_bytes};
  return allocation.covers(page) && block.covers(page) ? page : memory_range{};
}

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

void waiting_memory::note_use() noexcept
{
  unused_bytes_ = 0;
  end_witness();
}

void waiting_memory::note_free(memory_range allocation) noexcept
{
  if (bytes_in_common(allocation, witness_) > 0) { end_witness(); }
}

void waiting_memory::end_witness() noexcept
{
  if (std::exchange(witness_, {}).bytes > 0) { with_.driver.counters().release_faults(); }
}

/** @brief A fault of the device is a use; and a page that was brought tells of none. */
void waiting_memory::look_at_witness(ledger_view& view) noexcept
{
  if (witness_.bytes == 0) { return; }
  if (with_.driver.counters().read().gpu_faults != faults_) {
    note_use();
    return;
  }
  bool stands = false;
  if (view.holds(witness_.address)) {
    view.each(witness_, [&](block_record const& block, memory_range) { stands = block.waits; });
  }
  if (!stands) { end_witness(); }
}

memory_range waiting_memory::note_new(ledger_view& view,
                                      claim_list const& coming,
                                      memory_range allocation)
{
  look_at_witness(view);
  auto const is_new = [](auto const& each) { return each.record->is_new(); };
  auto const first  = std::find_if(coming.begin(), coming.end(), is_new);
  if (first == coming.end()) { return {}; }
  std::for_each(first, coming.end(), [&](auto const& each) {
    if (is_new(each)) { unused_bytes_ += each.range.bytes; }
  });
  bool const much = unused_bytes_ >= with_.ledger.budget_bytes() / witnessed_part;
  if (!much || witness_.bytes > 0 || !may_wait()) { return {}; }
  auto const page = first_page(allocation, first->range);
  if (page.bytes == 0 || !with_.driver.counters().request_faults().available) { return {}; }
  witness_ = page;
  faults_  = with_.driver.counters().read().gpu_faults;
  return page;
}

void waiting_memory::let_wait(ledger_view& view, claim_list& missing)
{
  count_written(view);  // the thread may not have looked since
  auto const budget_bytes = with_.ledger.budget_bytes();
  auto const coming_bytes = uncounted_bytes(missing);
  auto const all_bytes    = with_.ledger.resident_bytes() + coming_bytes;
  bool const outruns      = unused_bytes_ + coming_bytes > budget_bytes;
  bool const unused       = witness_.bytes > 0 && may_wait();
  if (all_bytes <= budget_bytes || !outruns || !unused) { return; }
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
  look_at_witness(view);
  if (!any_wait_) { return false; }
  auto const left_bytes = with_.moved.left_unasked_bytes() - left_bytes_;
  if (left_bytes <= with_.ledger.budget_bytes() / unlooked_part) { return false; }
  note_use();
  left_bytes_ += left_bytes;
  with_.moved.made(left_bytes);
  auto written_bytes = left_bytes + std::exchange(beside_bytes_, 0);
  auto const now     = with_.clock.now();
  view.each([&](block_record& block, memory_range whole) {  // which were written nobody knows
    bool const nowhere = block.waits && block.place == block_place::nowhere;
    if (!nowhere || written_bytes == 0) { return; }
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

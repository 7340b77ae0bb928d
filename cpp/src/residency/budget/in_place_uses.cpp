// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/in_place_uses.hpp>
#include <rmm_uvm/residency/in_place.hpp>

#include <algorithm>
#include <atomic>

namespace rmm_uvm {
namespace {

constexpr use_tick uses_until_cold = 64;  // of others: then what lies on a neighbour is copied

/** @brief Those of the blocks that could be used on a neighbour; adds up what is not here. */
[[nodiscard]] block_list lying_beside(ledger_view& view,
                                      range_list wanted,
                                      std::size_t& missing_bytes)
{
  block_list beside;
  for (auto const& range : wanted) {
    view.each(range, [&](block_record& block, memory_range whole) {
      if (block.place != block_place::device) { missing_bytes += whole.bytes; }
      bool const ours = block.place == block_place::beside && !block.advised() && !block.copied;
      if (ours && block.movable()) { beside.push_back({&block, whole}); }
    });
  }
  return beside;
}

}  // namespace

void in_place_uses::choose(range_list wanted)
{
  if (!with_.settings.in_place) { return; }
  ledger_view view{with_.ledger.blocks()};
  if (!with_.neighbors.holds_any()) { return; }
  with_.ledger.wait_until_free(view, wanted);
  if (with_.ledger.ended()) { return; }
  std::size_t missing_bytes = 0;
  auto const beside         = lying_beside(view, wanted, missing_bytes);
  if (beside.empty()) { return; }
  bool const foreseen = with_.uses.foresees();
  auto const other    = foreseen ? first_to_leave(view, missing_bytes) : std::nullopt;
  bool const room  = with_.ledger.resident_bytes() + missing_bytes <= with_.ledger.budget_bytes();
  auto const now   = with_.clock.now();
  auto const stays = [&](viewed_block const& each) {
    beside_use use{room || !other, std::nullopt, other};
    auto const next = each.record->expected_use();
    if (foreseen && next != unknown_use) {
      use.again_in = next == no_use ? no_use : next - std::min(next, now);
    }
    return cheaper_in_place(use, with_.settings.rates);
  };
  block_list mapping;
  block_list unmapping;
  for (auto const& each : beside) {
    bool const there = stays(each);
    if (there && each.record->in_place) { with_.neighbors.count_in_place(each); }
    if (there != each.record->in_place) { (there ? mapping : unmapping).push_back(each); }
  }
  if (mapping.empty() && unmapping.empty()) { return; }
  change_mappings(view, mapping, unmapping);
}

/** @brief Maps blocks on neighbours here, and ends the mappings of others; gives up the lock. */
void in_place_uses::change_mappings(ledger_view& view,
                                    block_list const& mapping,
                                    block_list const& unmapping)
{
  auto const mapped   = joined(view, mapping, any_length);
  auto const unmapped = joined(view, unmapping, any_length);
  set_busy(mapping, true);  // from here on nothing takes memory
  set_busy(unmapping, true);
  view.unlock();
  auto const begun = with_.advice.map(mapped);
  auto const ended = with_.advice.unmap(unmapped);
  view.relock();
  with_.ledger.count_if_failed(begun);
  with_.ledger.count_if_failed(ended);
  set_busy(mapping, false);
  set_busy(unmapping, false);
  for (auto const& each : mapping) {
    each.record->in_place = begun.ok();
    if (begun.ok()) { with_.neighbors.count_in_place(each); }
  }
  for (auto const& each : unmapping) {
    each.record->in_place = !ended.ok();
  }
  with_.ledger.tell_change();
}

/** @brief Uses until that of the live blocks which would leave next is needed; none: none has to.
 */
std::optional<use_tick> in_place_uses::first_to_leave(ledger_view& view, std::size_t bytes) const
{
  auto const leaving = with_.room.choose(view, bytes, bytes, candidates::all);
  if (!leaving.dead.empty() || leaving.live.empty()) { return std::nullopt; }
  auto soonest   = no_use;
  auto const now = with_.clock.now();
  for (auto const& each : leaving.live) {
    auto const next = each.record->expected_use();
    if (next < unknown_use) { soonest = std::min(soonest, next - std::min(next, now)); }
  }
  return soonest;
}

work_outcome in_place_uses::copy_beside(ledger_view& view)
{
  if (!copies_beside_) { return work_outcome::nothing; }
  block_list cold;
  std::size_t bytes      = 0;
  auto const piece_bytes = with_.settings.piece_bytes;
  auto const now         = with_.clock.now();
  view.each([&](block_record& block, memory_range whole) {
    bool const lies = block.place == block_place::beside && block.movable() && !block.dead();
    if (!lies || block.copied || block.in_place || block.advised()) { return; }
    if (now - std::max(block.allocated, block.touched) < uses_until_cold) { return; }
    if (bytes + whole.bytes > piece_bytes) { return; }
    if (!cold.empty() && cold.front().record->neighbor != block.neighbor) { return; }
    bytes += whole.bytes;
    cold.push_back({&block, whole});
  });
  if (cold.empty()) { return work_outcome::nothing; }
  auto const ranges = joined(view, cold, piece_bytes);
  auto const there  = with_.neighbors.where(cold.front().record->neighbor);
  set_busy(cold, true);
  view.unlock();
  stream_handle evictions = nullptr;
  auto result             = with_.driver.own_stream(own_stream_use::evictions, evictions);
  for (auto const& range : ranges) {
    if (!result.ok()) { break; }
    result = with_.driver.advise(range, memory_advice::read_mostly, location::host());
  }
  std::atomic<std::size_t> moved_bytes{0};
  if (result.ok()) {
    result = with_.mover.move_all(ranges, location::host(), evictions, moved_bytes);
  }
  if (result.ok()) { result = with_.driver.synchronize(evictions); }
  if (!result.ok()) {  // some may have a copy: all of them have one place again
    static_cast<void>(with_.advice.leave_one_copy(ranges, there));
  }
  view.relock();
  with_.ledger.count_if_failed(result);
  set_busy(cold, false);
  for (auto const& each : cold) {
    each.record->copied = result.ok();
  }
  if (result.ok()) { copied_beside_bytes_ += bytes; }
  copies_beside_ = result.ok();  // what failed would be tried again and again
  with_.ledger.tell_change();
  return result.ok() ? work_outcome::again : work_outcome::nothing;
}

}  // namespace rmm_uvm

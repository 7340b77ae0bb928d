// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is used on a neighbour, and what has a copy on the host: advice to the driver, and its end.
#include <rmm_uvm/residency/in_place.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr use_tick uses_until_cold = 64;  // of others: then what lies on a neighbour is copied

/** @brief The later of two answers that matters. */
void keep_failure(status& kept, status result) noexcept
{
  if (!result.ok()) { kept = result; }
}

}  // namespace

/** @brief Decides which of the blocks that lie on neighbours are used there. */
void residency_manager::choose_in_place(range_list wanted)
{
  if (!settings_.in_place || !holds_beside()) { return; }
  ledger_view view{ledger_};
  wait_until_free(view, wanted);
  victims beside;
  std::size_t missing_bytes = 0;
  for (auto const& range : wanted) {
    view.each(range, [&](block_record& block, memory_range whole) {
      if (block.place != block_place::device) { missing_bytes += whole.bytes; }
      bool const ours = block.place == block_place::beside && !block.advised() && !block.copied;
      if (ours && block.movable()) { beside.push_back({&block, whole}); }
    });
  }
  if (beside.empty()) { return; }
  auto const other = prediction_.on() ? first_to_leave(view, missing_bytes) : std::nullopt;
  bool const room  = counts_.resident_bytes + missing_bytes <= settings_.budget_bytes;
  auto const stays = [&](viewed_block const& each) {
    beside_use use{room || !other, std::nullopt, other};
    auto const next = each.record->next_use;
    if (prediction_.on() && next != unknown_use) {
      use.again_in = next == no_use ? no_use : next - std::min(next, now_);
    }
    return cheaper_in_place(use, settings_.rates);
  };
  victims used_there;
  victims coming;
  for (auto const& each : beside) {
    (stays(each) ? used_there : coming).push_back(each);
  }
  map_in_place(view, used_there, true);
  map_in_place(view, coming, false);
  for (auto const& each : used_there) {
    if (each.record->in_place) { counts_.in_place_bytes += each.range.bytes; }
  }
}

/** @brief Uses until that of the live blocks which would leave next is needed; none: none has to.
 */
std::optional<use_tick> residency_manager::first_to_leave(ledger_view& view,
                                                          std::size_t bytes) const
{
  auto const leaving = choose(view, bytes, bytes, candidates::all);
  if (!leaving.dead.empty() || leaving.live.empty()) { return std::nullopt; }
  auto soonest = no_use;
  for (auto const& each : leaving.live) {
    auto const next = each.record->next_use;
    if (next < unknown_use) { soonest = std::min(soonest, next - std::min(next, now_)); }
  }
  return soonest;
}

/** @brief Has blocks on neighbours mapped here, or not any more; gives up the lock. */
void residency_manager::map_in_place(ledger_view& view, victims const& blocks, bool mapped)
{
  victims changing;
  for (auto const& each : blocks) {
    if (each.record->in_place == mapped || each.record->busy) { continue; }
    each.record->busy = true;
    changing.push_back(each);
  }
  if (changing.empty()) { return; }
  auto const ranges = joined(view, changing, ~std::size_t{0});
  view.lock().unlock();
  status failure;
  auto const here = location::device(driver_->info().device_id);
  for (auto const& range : ranges) {
    auto const what = mapped ? memory_advice::accessed_by : memory_advice::unset_accessed_by;
    keep_failure(failure, driver_->advise(range, what, here));
  }
  view.lock().lock();
  if (!failure.ok()) { count_failure(failure); }
  for (auto const& each : changing) {
    // What may be mapped is taken to be, so that the mapping is ended once.
    each.record->in_place = mapped ? failure.ok() : !failure.ok();
    each.record->busy     = false;
  }
  changed_.notify_all();
}

status residency_manager::end_in_place(std::span<memory_range const> blocks) noexcept
{
  status failure;
  auto const here = location::device(driver_->info().device_id);
  for (auto const& range : blocks) {
    keep_failure(failure, driver_->advise(range, memory_advice::unset_accessed_by, here));
  }
  return failure;
}

/** @brief Of blocks with two copies one stays, without that anything is copied. */
status residency_manager::leave_one_copy(std::span<memory_range const> blocks,
                                         location where) noexcept
{
  status failure;
  for (auto const& range : blocks) {
    // Where they belong while the other copy goes is where the one stays.
    keep_failure(failure, driver_->advise(range, memory_advice::preferred_location, where));
    keep_failure(failure, driver_->advise(range, memory_advice::unset_read_mostly, where));
    keep_failure(failure, driver_->advise(range, memory_advice::unset_preferred_location, where));
  }
  return failure;
}

/** @brief Ends what was advised about blocks that come to the device. */
void residency_manager::end_advice(claims const& blocks) noexcept
{
  status failure;
  for (auto const& each : blocks) {
    if (each.mapped) { keep_failure(failure, end_in_place({&each.range, 1})); }
    if (each.copied && each.from != no_neighbor) {
      auto const device_id = settings_.neighbors[static_cast<std::size_t>(each.from)].device_id;
      keep_failure(failure, leave_one_copy({&each.range, 1}, location::device(device_id)));
    }
  }
  if (failure.ok()) { return; }
  ledger_view const view{ledger_};
  count_failure(failure);
}

/** @brief Copies a piece of what lies unused on a neighbour to the host, where it stays as well. */
residency_manager::outcome residency_manager::copy_beside(ledger_view& view)
{
  victims cold;
  std::size_t bytes = 0;
  view.each([&](block_record& block, memory_range whole) {
    bool const lies = block.place == block_place::beside && block.movable() && !block.dead();
    if (!lies || block.copied || block.in_place || block.advised()) { return; }
    if (now_ - std::max(block.allocated, block.touched) < uses_until_cold) { return; }
    if (bytes + whole.bytes > settings_.piece_bytes) { return; }
    bytes += whole.bytes;
    cold.push_back({&block, whole});
  });
  if (cold.empty()) { return outcome::nothing; }
  auto const ranges = joined(view, cold, settings_.piece_bytes);
  for (auto const& each : cold) {
    each.record->busy = true;
  }
  view.lock().unlock();
  stream_handle evictions = nullptr;
  auto result             = driver_->own_stream(own_stream_use::evictions, evictions);
  for (auto const& range : ranges) {
    if (!result.ok()) { break; }
    result = driver_->advise(range, memory_advice::read_mostly, location::host());
  }
  std::atomic<std::size_t> moved_bytes{0};
  if (result.ok()) { result = move_all(ranges, location::host(), evictions, moved_bytes); }
  if (result.ok()) { result = driver_->synchronize(evictions); }
  view.lock().lock();
  if (!result.ok()) { count_failure(result); }
  for (auto const& each : cold) {
    each.record->busy   = false;
    each.record->copied = true;  // advised, at least: that is ended when it comes or goes
  }
  if (result.ok()) { counts_.copied_beside_bytes += bytes; }
  changed_.notify_all();
  return result.ok() ? outcome::again : outcome::nothing;
}

}  // namespace rmm_uvm

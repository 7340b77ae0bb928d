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

/** @brief Those of the blocks that could be used on a neighbour; adds up what is not here. */
residency_manager::victims residency_manager::lying_beside(ledger_view& view,
                                                           range_list wanted,
                                                           std::size_t& missing_bytes)
{
  victims beside;
  for (auto const& range : wanted) {
    view.each(range, [&](block_record& block, memory_range whole) {
      if (block.place != block_place::device) { missing_bytes += whole.bytes; }
      bool const ours = block.place == block_place::beside && !block.advised() && !block.copied;
      if (ours && block.movable()) { beside.push_back({&block, whole}); }
    });
  }
  return beside;
}

/** @brief Counts a use of a block where it lies: what kernels read comes over its links. */
void residency_manager::count_in_place(viewed_block const& block) noexcept
{
  counts_.in_place_bytes += block.range.bytes;
  watches_[block.record->neighbor].asked.from_bytes += block.range.bytes;
}

/** @brief Decides which of the blocks that lie on neighbours are used there. */
void residency_manager::choose_in_place(range_list wanted)
{
  if (!settings_.in_place || !holds_beside()) { return; }
  ledger_view view{ledger_};
  wait_until_free(view, wanted);
  if (stopping_) { return; }
  std::size_t missing_bytes = 0;
  auto const beside         = lying_beside(view, wanted, missing_bytes);
  if (beside.empty()) { return; }
  auto const other = foresees() ? first_to_leave(view, missing_bytes) : std::nullopt;
  bool const room  = counts_.resident_bytes + missing_bytes <= settings_.budget_bytes;
  auto const stays = [&](viewed_block const& each) {
    beside_use use{room || !other, std::nullopt, other};
    auto const next = each.record->expected_use();
    if (foresees() && next != unknown_use) {
      use.again_in = next == no_use ? no_use : next - std::min(next, now_);
    }
    return cheaper_in_place(use, settings_.rates);
  };
  victims mapping;
  victims unmapping;
  for (auto const& each : beside) {
    bool const there = stays(each);
    if (there && each.record->in_place) { count_in_place(each); }
    if (there != each.record->in_place) { (there ? mapping : unmapping).push_back(each); }
  }
  if (mapping.empty() && unmapping.empty()) { return; }
  change_mappings(view, mapping, unmapping);
}

/** @brief Maps blocks on neighbours here, and ends the mappings of others; gives up the lock. */
void residency_manager::change_mappings(ledger_view& view,
                                        victims const& mapping,
                                        victims const& unmapping)
{
  auto const mapped   = joined(view, mapping, ~std::size_t{0});
  auto const unmapped = joined(view, unmapping, ~std::size_t{0});
  for (auto const* these : {&mapping, &unmapping}) {  // from here on nothing takes memory
    for (auto const& each : *these) {
      each.record->busy = true;
    }
  }
  view.lock().unlock();
  status failure;
  for (auto const& range : mapped) {
    auto const here = location::device(driver_->info().device_id);
    keep_failure(failure, driver_->advise(range, memory_advice::accessed_by, here));
  }
  // Of what may be mapped in spite of a failure the mapping ends.
  if (!failure.ok()) { static_cast<void>(end_in_place(mapped)); }
  auto const ended = end_in_place(unmapped);
  view.lock().lock();
  for (auto const& each : {failure, ended}) {
    if (!each.ok()) { count_failure(each); }
  }
  for (auto const& each : mapping) {
    each.record->in_place = failure.ok();
    each.record->busy     = false;
    if (failure.ok()) { count_in_place(each); }
  }
  for (auto const& each : unmapping) {
    each.record->in_place = !ended.ok();
    each.record->busy     = false;
  }
  changed_.notify_all();
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
    auto const next = each.record->expected_use();
    if (next < unknown_use) { soonest = std::min(soonest, next - std::min(next, now_)); }
  }
  return soonest;
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
    // A user may have advised about it meanwhile: that holds.
    if (adviser_ != nullptr) { keep_failure(failure, adviser_->tell_again(range)); }
  }
  return failure;
}

/**
 * @brief Ends what was advised about blocks that come to the device.
 *
 * Neighbouring blocks together: each call waits for the kernel driver. Takes no memory.
 */
void residency_manager::end_advice(claims const& blocks) noexcept
{
  status failure;
  claimed_block run{};  // of blocks about which the same was advised
  auto const end_run = [&] {
    if (run.range.bytes == 0) { return; }
    if (run.mapped) { keep_failure(failure, end_in_place({&run.range, 1})); }
    if (run.copied) {
      auto const device_id = settings_.neighbors[static_cast<std::size_t>(run.from)].device_id;
      keep_failure(failure, leave_one_copy({&run.range, 1}, location::device(device_id)));
    }
  };
  for (auto const& each : blocks) {
    if (!each.ours_to_end()) { continue; }
    bool const joins = run.range.bytes > 0 && !each.first && run.range.end() == each.range.address;
    if (joins && run.from == each.from && run.mapped == each.mapped && run.copied == each.copied) {
      run.range.bytes += each.range.bytes;
      continue;
    }
    end_run();
    run = each;
  }
  end_run();
  if (failure.ok()) { return; }
  ledger_view const view{ledger_};
  count_failure(failure);
}

/** @brief The same from under the lock, which it gives up where anything was advised. */
void residency_manager::end_advice(ledger_view& view, claims const& blocks) noexcept
{
  auto const ours = [](claimed_block const& each) { return each.ours_to_end(); };
  if (std::none_of(blocks.begin(), blocks.end(), ours)) { return; }
  view.lock().unlock();
  end_advice(blocks);
  view.lock().lock();
}

/** @brief Copies a piece of what lies unused on a neighbour to the host, where it stays as well. */
residency_manager::outcome residency_manager::copy_beside(ledger_view& view)
{
  if (!copies_beside_) { return outcome::nothing; }
  victims cold;
  std::size_t bytes = 0;
  view.each([&](block_record& block, memory_range whole) {
    bool const lies = block.place == block_place::beside && block.movable() && !block.dead();
    if (!lies || block.copied || block.in_place || block.advised()) { return; }
    if (now_ - std::max(block.allocated, block.touched) < uses_until_cold) { return; }
    if (bytes + whole.bytes > settings_.piece_bytes) { return; }
    if (!cold.empty() && cold.front().record->neighbor != block.neighbor) { return; }
    bytes += whole.bytes;
    cold.push_back({&block, whole});
  });
  if (cold.empty()) { return outcome::nothing; }
  auto const ranges = joined(view, cold, settings_.piece_bytes);
  auto const there  = location::device(neighbors_[cold.front().record->neighbor].which.device_id);
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
  if (!result.ok()) {  // some may have a copy: all of them have one place again
    static_cast<void>(leave_one_copy(ranges, there));
  }
  view.lock().lock();
  if (!result.ok()) { count_failure(result); }
  for (auto const& each : cold) {
    each.record->busy   = false;
    each.record->copied = result.ok();
  }
  if (result.ok()) { counts_.copied_beside_bytes += bytes; }
  copies_beside_ = result.ok();  // what failed would be tried again and again
  changed_.notify_all();
  return result.ok() ? outcome::again : outcome::nothing;
}

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/early_copies.hpp>

#include <algorithm>
#include <atomic>
#include <vector>

namespace rmm_uvm {
namespace {

constexpr std::size_t pieces_together = 4;  // by as many threads; who waits for them waits 1 ms

}  // namespace

work_outcome early_copies::copy(ledger_view& view, std::size_t leaving_bytes)
{
  auto& copies           = with_.copies;
  auto const known_bytes = copies.kept_bytes();
  if (!works_ || !copies.keeps() || with_.neighbors.size() > 0 || leaving_bytes <= known_bytes ||
      !copies.early_ones_pay(with_.uses.learnt_bytes())) {
    return work_outcome::nothing;
  }
  auto const most_bytes = pieces_together * with_.settings.piece_bytes;
  auto const chosen =
    with_.room.choose_to_copy(view, std::min(leaving_bytes - known_bytes, most_bytes));
  if (!chosen) { return work_outcome::nothing; }
  auto const& blocks = *chosen;
  if (blocks.empty()) {
    return with_.marks.any_outstanding() ? work_outcome::later : work_outcome::nothing;
  }
  auto const ranges = joined(view, blocks, with_.settings.piece_bytes);
  auto const bytes  = bytes_of(blocks);
  set_busy(blocks, true);
  for (auto const& each : blocks) {
    each.record->copying = true;
    copies.note_kept(*each.record, each.range);
    view.change(each.range, with_.clock.now(), [](block_record&, memory_range) {});
  }
  copies.note_coming(bytes);
  with_.moved.ask_to_host(bytes);  // before the call: counters rise while it runs
  view.unlock();
  stream_handle evictions = nullptr;
  auto result             = with_.driver.own_stream(own_stream_use::evictions, evictions);
  if (result.ok() && !copies.begin(ranges)) { result = {status_code::driver_error, 0, "begin"}; }
  std::atomic<std::size_t> moved_bytes{0};
  if (result.ok()) {
    result = with_.mover.move_all(ranges, location::host(), evictions, moved_bytes);
  }
  if (result.ok()) { result = with_.driver.synchronize(evictions); }
  auto const not_copied = result.ok() ? copies.written(ranges) : ranges;
  view.relock();
  with_.ledger.count_if_failed(result);
  if (!result.ok()) { with_.moved.was_not_asked(bytes); }
  auto const lacking_bytes = std::min(bytes_of(not_copied), bytes);
  if (lacking_bytes == bytes) { works_ = false; }  // it would be tried again and again
  copied_bytes_ += bytes - lacking_bytes;
  settle(view, blocks, not_copied);
  return works_ ? work_outcome::again : work_outcome::nothing;
}

/** @brief Blocks have a copy, but for those of which a part has none; they have one place again. */
void early_copies::settle(ledger_view& view, block_list const& blocks, range_list not_copied)
{
  set_busy(blocks, false);
  for (auto const& each : blocks) {
    each.record->copying = false;
    each.record->early   = true;
  }
  with_.ledger.tell_change();
  with_.copies.end_here(view, not_copied);
}

}  // namespace rmm_uvm

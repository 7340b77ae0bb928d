// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/early_copies.hpp>

#include <algorithm>
#include <atomic>
#include <vector>

namespace rmm_uvm {
namespace {

constexpr std::size_t pieces_together = 4;  // by as many threads; who waits for them waits 1 ms
constexpr int most_failures           = 3;  // in turn: then it would be tried again and again

}  // namespace

bool early_copies::pay() noexcept
{
  return failures_ < most_failures && with_.copies.keeps() && with_.neighbors.size() == 0 &&
         with_.copies.early_ones_pay(with_.uses.learnt_bytes());
}

work_outcome early_copies::copy(ledger_view& view, std::size_t leaving_bytes)
{
  auto& copies           = with_.copies;
  auto const known_bytes = copies.kept_bytes();
  if (leaving_bytes <= known_bytes) { return work_outcome::nothing; }
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
  copies.are_made(true);
  with_.moved.ask_to_host(bytes);  // before the call: counters rise while it runs
  view.unlock();
  auto const result = make(ranges);
  std::vector<memory_range> written;
  if (result.ok()) { written = copies.written(ranges); }
  view.relock();
  if (copies.keeps()) { with_.ledger.count_if_failed(result); }  // else that was counted
  if (!result.ok()) { with_.moved.was_not_asked(bytes); }
  copies.are_made(false);
  settle(view, blocks, result.ok() ? range_list{written} : range_list{ranges}, result.ok());
  return work_outcome::again;
}

/** @brief Has the host get copies of ranges; they are waited for. */
status early_copies::make(range_list ranges) noexcept
{
  stream_handle evictions = nullptr;
  auto const stream       = with_.driver.own_stream(own_stream_use::evictions, evictions);
  if (!stream.ok()) { return stream; }
  if (!with_.copies.begin(ranges)) { return {status_code::driver_error, 0, "early_copies"}; }
  std::atomic<std::size_t> moved_bytes{0};
  auto const moved = with_.mover.move_all(ranges, location::host(), evictions, moved_bytes);
  return moved.ok() ? with_.driver.synchronize(evictions) : moved;
}

/**
 * @brief Blocks have a copy, but for those of which a part has none: these have one place again.
 * @param lacking of these parts there is none
 * @param written since somebody wrote them meanwhile, who may do so again; else it failed
 */
void early_copies::settle(ledger_view& view,
                          block_list const& blocks,
                          range_list lacking,
                          bool written)
{
  auto const all_bytes = bytes_of(blocks);
  set_busy(blocks, false);
  for (auto const& each : blocks) {
    each.record->copying = false;
    each.record->early   = true;
  }
  std::size_t lacking_bytes = 0;
  for (auto const& part : lacking) {
    view.each(part, [&](block_record& block, memory_range whole) {
      if (block.only_read) { lacking_bytes += whole.bytes; }
      if (written) { block.note_use(false, false); }
    });
  }
  copied_bytes_ += all_bytes - std::min(lacking_bytes, all_bytes);
  failures_ = lacking_bytes < all_bytes ? 0 : failures_ + 1;
  with_.ledger.tell_change();
  with_.copies.end_here(view, lacking);
}

}  // namespace rmm_uvm

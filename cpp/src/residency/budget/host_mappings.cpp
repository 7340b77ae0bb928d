// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/host_mappings.hpp>
#include <rmm_uvm/residency/larger_requests.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {

void host_mappings::map_rest(std::vector<memory_range>& wanted)
{
  if (!with_.settings.fetch) { return; }
  std::size_t wanted_bytes = 0;
  for (auto const& range : wanted) {
    wanted_bytes += bytes_of_blocks(range);
  }
  auto const budget_bytes = with_.ledger.budget_bytes();
  if (wanted_bytes <= budget_bytes) { return; }
  ledger_view view{with_.ledger.blocks()};
  with_.ledger.wait_until_free(view, wanted);
  if (with_.ledger.ended()) { return; }
  block_list all;
  for (auto const& range : wanted) {
    view.each(range,
              [&](block_record& block, memory_range whole) { all.push_back({&block, whole}); });
  }
  make_distinct(all);
  wanted_bytes = bytes_of(all);
  if (wanted_bytes <= budget_bytes) { return; }
  ++too_large_;
  too_large_bytes_        = std::max(too_large_bytes_, wanted_bytes);
  std::size_t there_bytes = 0;
  for (auto const& each : all) {
    if (each.record->place == block_place::device) { there_bytes += each.range.bytes; }
  }
  auto divided = divide(wanted, budget_bytes, there_bytes);
  block_list mapping;
  for (auto const& range : divided.in_place) {
    view.each(range, [&](block_record& block, memory_range whole) {
      if (block.place != block_place::host || block.advised()) { return; }
      if (block.in_place) {
        host_read_bytes_ += whole.bytes;
      } else if (block.movable()) {
        mapping.push_back({&block, whole});
      }
    });
  }
  wanted = std::move(divided.coming);
  if (mapping.empty()) { return; }
  make_distinct(mapping);
  auto const ranges = joined(view, mapping, any_length);
  mapped_.insert(mapped_.end(), ranges.begin(), ranges.end());
  set_busy(mapping, true);  // from here on nothing takes memory
  view.unlock();
  auto const begun = with_.advice.map(ranges);
  view.relock();
  with_.ledger.count_if_failed(begun);
  set_busy(mapping, false);
  for (auto const& each : mapping) {
    each.record->in_place = begun.ok();
  }
  if (begun.ok()) { host_read_bytes_ += bytes_of(mapping); }
  with_.ledger.tell_change();
}

void host_mappings::end_of_done(ledger_view& view)
{
  if (mapped_.empty()) { return; }
  with_.marks.look();
  end(view, with_.marks.idle_until());
}

void host_mappings::end_all(ledger_view& view) { end(view, no_use); }

/** @brief Ends the mappings of blocks that were last used until then. */
void host_mappings::end(ledger_view& view, use_tick until)
{
  std::vector<memory_range> stay;
  block_list ending;
  for (auto const& range : mapped_) {
    bool stays = false;
    view.each(range, [&](block_record& block, memory_range whole) {
      if (!block.in_place || block.place != block_place::host) { return; }
      if (block.touched <= until && block.movable()) {
        ending.push_back({&block, whole});
      } else {
        stays = true;
      }
    });
    if (stays) { stay.push_back(range); }
  }
  mapped_ = std::move(stay);
  if (ending.empty()) { return; }
  make_distinct(ending);
  auto const ranges = joined(view, ending, any_length);
  set_busy(ending, true);
  view.unlock();
  auto const ended = with_.advice.unmap(ranges);
  view.relock();
  with_.ledger.count_if_failed(ended);
  set_busy(ending, false);
  for (auto const& each : ending) {
    each.record->in_place = false;
  }
  with_.ledger.tell_change();
}

void host_mappings::tell(residency_statistics& told) const noexcept
{
  told.host_read_bytes = host_read_bytes_;
  told.too_large += too_large_;
  told.too_large_bytes = std::max(told.too_large_bytes, too_large_bytes_);
}

}  // namespace rmm_uvm

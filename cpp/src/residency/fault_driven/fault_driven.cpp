// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/fault_driven/fault_driven.hpp>

#include <vector>

namespace rmm_uvm {

void fault_driven_learner::room_was_made(std::span<use_event const> uses)
{
  ledger_view view{blocks_};
  for (auto const& use : uses) {
    if (use.range.bytes > 0 && view.holds(use.range.address)) {
      note(view, use, unknown_use, false);
    }
  }
}

std::size_t fault_driven_arrivals::needed_bytes(ledger_view& /*view*/,
                                                range_list wanted,
                                                std::size_t /*missing_bytes*/) const
{
  return bytes_of(wanted);
}

void fault_driven_arrivals::bring_without_room(ledger_view& view, arrival_request const& request)
{
  std::vector<memory_range> pieces;
  for (auto const& range : request.wanted) {
    cut(pieces, range, with_.settings.piece_bytes);
  }
  std::size_t passed = 0;
  try {
    for (auto const& piece : pieces) {
      arrival_request const part{{&piece, 1}, request.allocation, request.stream, request.why};
      auto const missing = claim(view, part);
      ++passed;
      admit(view, missing, part);
      with_.advice.end(view, missing);
      settle(missing, true);
      with_.ledger.tell_change();
    }
  } catch (...) {  // no list of what is missing: the rest comes beside the budget
    with_.ledger.count_failure({status_code::out_of_memory, 0, "bring_without_room"});
  }
  hold(view, range_list{pieces}.first(passed), -1);
  with_.ledger.tell_change();
}

}  // namespace rmm_uvm

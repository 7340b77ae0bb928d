// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/block_lists.hpp>

#include <algorithm>

namespace rmm_uvm {

std::size_t bytes_of(block_list const& blocks) noexcept
{
  std::size_t bytes = 0;
  for (auto const& each : blocks) {
    bytes += each.range.bytes;
  }
  return bytes;
}

std::size_t uncounted_bytes(claim_list const& blocks) noexcept
{
  std::size_t bytes = 0;
  for (auto const& each : blocks) {
    if (!each.counted) { bytes += each.range.bytes; }
  }
  return bytes;
}

void make_distinct(block_list& blocks)
{
  std::sort(blocks.begin(), blocks.end(), [](auto const& a, auto const& b) {
    return a.range.address < b.range.address;
  });
  auto const same = [](auto const& a, auto const& b) { return a.record == b.record; };
  blocks.erase(std::unique(blocks.begin(), blocks.end(), same), blocks.end());
}

void set_busy(block_list const& blocks, bool busy) noexcept
{
  for (auto const& each : blocks) {
    each.record->busy = busy;
  }
}

std::vector<memory_range> joined(ledger_view const& view, block_list blocks, std::size_t most_bytes)
{
  std::sort(blocks.begin(), blocks.end(), [](auto const& a, auto const& b) {
    return a.range.address < b.range.address;
  });
  std::vector<memory_range> found;
  for (auto const& each : blocks) {
    if (!found.empty() && found.back().end() == each.range.address &&
        found.back().bytes + each.range.bytes <= most_bytes &&
        !view.slab_begins(each.range.address)) {
      found.back().bytes += each.range.bytes;
    } else {
      found.push_back(each.range);
    }
  }
  return found;
}

bool is_under_way(ledger_view& view, memory_range range, bool to_read)
{
  bool busy = false;
  view.each(range, [&](block_record const& block, memory_range) {
    busy = busy || (block.busy && !(to_read && block.copying));
  });
  return busy;
}

void hold(ledger_view& view, range_list wanted, int by)
{
  for (auto const& range : wanted) {
    view.each(range, [by](block_record& block, memory_range) {
      if (by > 0 || block.holds > 0) { block.holds = static_cast<std::uint16_t>(block.holds + by); }
    });
  }
}

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/managed_ranges.hpp>
#include <rmm_uvm/sim/page_set.hpp>

#include <algorithm>
#include <iterator>

namespace rmm_uvm::sim {

bool managed_ranges::is_free(memory_range range) const noexcept
{
  // Numbers of blocks in the address space have 32 bits.
  constexpr auto end = std::uintptr_t{1} << 53U;
  if (range.bytes == 0 || range.address % va_block_bytes != 0 || range.address >= end ||
      range.bytes > end - range.address) {
    return false;
  }
  auto const next = ranges_.lower_bound(range.address);
  if (next != ranges_.end() && next->first - range.address < range.bytes) { return false; }
  if (next == ranges_.begin()) { return true; }
  auto const& before = *std::prev(next);
  return range.address - before.first >= before.second.bytes;
}

std::optional<managed_range> managed_ranges::beginning_at(std::uintptr_t address,
                                                          unsigned program) const noexcept
{
  auto const it = ranges_.find(address);
  if (it == ranges_.end() || it->second.program != program) { return std::nullopt; }
  return it->second;
}

std::optional<memory_range> managed_ranges::range_of(std::uintptr_t address,
                                                     unsigned program) const noexcept
{
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) { return std::nullopt; }
  it = std::prev(it);
  if (it->second.program != program) { return std::nullopt; }
  if (address - it->first >= it->second.bytes) { return std::nullopt; }
  return memory_range{it->first, it->second.bytes};
}

std::optional<block_span> managed_ranges::find(memory_range range,
                                               bool inward,
                                               unsigned program) const noexcept
{
  auto it = ranges_.upper_bound(range.address);
  if (it == ranges_.begin()) { return std::nullopt; }
  it               = std::prev(it);
  auto const bytes = it->second.bytes;
  if (it->second.program != program) { return std::nullopt; }  // another process' memory
  auto const offset = range.address - it->first;
  // Not by `range.end()`, which an absurd length takes past the end of the address space.
  if (range.bytes == 0 || offset > bytes || range.bytes > bytes - offset) { return std::nullopt; }
  auto const end = offset + range.bytes;
  auto first     = offset / page_bytes;
  auto last      = (end + page_bytes - 1) / page_bytes;
  if (inward) {  // a page that other bytes share is left alone, except at the range's own end
    first = (offset + page_bytes - 1) / page_bytes;
    if (end < bytes) { last = end / page_bytes; }
  }
  return block_span{it->second.first_block, first, std::max(first, last)};
}

}  // namespace rmm_uvm::sim

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/larger_requests.hpp>

#include <algorithm>

namespace rmm_uvm {

request_parts divide(std::span<memory_range const> wanted,
                     std::size_t budget_bytes,
                     std::size_t there_bytes)
{
  request_parts parts;
  auto const most_bytes = budget_bytes / 2;
  auto room_bytes =
    (most_bytes - std::min(most_bytes, there_bytes)) / va_block_bytes * va_block_bytes;
  for (auto const& range : wanted) {
    auto const first = va_block_floor(range.address);
    auto const end   = std::min(range.end(), first + room_bytes);  // where blocks begin, or the end
    if (end > range.address) {
      parts.coming.push_back({range.address, end - range.address});
      room_bytes -= std::min(room_bytes, va_block_ceil(end) - first);
    }
    auto const rest = std::max(end, range.address);
    if (rest < range.end()) { parts.in_place.push_back({rest, range.end() - rest}); }
  }
  return parts;
}

}  // namespace rmm_uvm

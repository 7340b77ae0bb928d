// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget_sharing.hpp>

#include <algorithm>

namespace rmm_uvm {

std::size_t fair_share(std::size_t shared_bytes,
                       std::size_t mine,
                       std::span<budget_share const> others) noexcept
{
  auto level = shared_bytes / (others.size() + 1);
  while (true) {
    auto left_bytes     = shared_bytes;  // for those who want more than the level
    std::size_t lacking = 0;
    auto const look     = [&](std::size_t wanted) {
      if (wanted > level) {
        ++lacking;
      } else {
        left_bytes -= std::min(left_bytes, wanted);
      }
    };
    look(mine);
    for (auto const& each : others) {
      look(each.wanted_bytes);
    }
    if (lacking == 0) { return mine + left_bytes / (others.size() + 1); }
    auto const next = left_bytes / lacking;
    if (next <= level) { return std::min(mine, level); }
    level = next;
  }
}

}  // namespace rmm_uvm

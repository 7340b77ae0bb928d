// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/prefetch_policy.hpp>

#include <algorithm>

namespace rmm_uvm {

prefetch_plan plan_allocation(memory_range allocation,
                              std::span<memory_range const> doubtful_runs,
                              bool discards)
{
  prefetch_plan plan;
  auto const inner_begin = va_block_ceil(allocation.address);
  auto const inner_end   = va_block_floor(allocation.end());
  for (auto const& run : doubtful_runs) {
    auto const begin = std::max(run.address, inner_begin);
    auto const end   = std::min(run.end(), inner_end);
    if (!discards || begin >= end) {
      plan.kept.push_back(run);
      continue;
    }
    if (run.address < begin) { plan.kept.push_back({run.address, begin - run.address}); }
    plan.dead.push_back({begin, end - begin});
    if (end < run.end()) { plan.kept.push_back({end, run.end() - end}); }
  }
  return plan;
}

}  // namespace rmm_uvm

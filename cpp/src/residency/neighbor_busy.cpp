// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/neighbor_busy.hpp>

#include <algorithm>

namespace rmm_uvm {

std::optional<double> load_fraction(neighbor_load const& load) noexcept
{
  // A value is more than none.
  return std::max(load.kernel_fraction, load.link_fraction);
}

bool is_busy(std::span<neighbor_load const> recent,
             busy_thresholds thresholds,
             bool was_busy) noexcept
{
  if (recent.empty()) { return was_busy; }
  bool const changes = std::all_of(recent.begin(), recent.end(), [&](neighbor_load const& each) {
    auto const load = load_fraction(each);
    return load && (was_busy ? *load < thresholds.idle_below : *load > thresholds.busy_above);
  });
  return changes ? !was_busy : was_busy;
}

}  // namespace rmm_uvm

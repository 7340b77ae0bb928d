// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/owner_load.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {

owner_load load_of_owner(double moving_fraction,
                         std::optional<double> link_fraction,
                         bool others_hold) noexcept
{
  auto const most = std::max(moving_fraction, link_fraction.value_or(0));
  return {others_hold ? moving_fraction : most, most};
}

bool wants_links(std::span<owner_load const> recent,
                 busy_thresholds thresholds,
                 bool wanted_them) noexcept
{
  if (recent.empty()) { return wanted_them; }
  bool const changes = std::all_of(recent.begin(), recent.end(), [&](owner_load const& each) {
    return wanted_them ? each.at_most < thresholds.idle_below
                       : each.at_least > thresholds.busy_above;
  });
  return changes ? !wanted_them : wanted_them;
}

double moving_time::take_fraction(time_point earlier, time_point now) noexcept
{
  auto moved = std::exchange(together_, {});
  if (under_way_ > 0) { moved += now - std::exchange(since_, now); }
  if (now <= earlier) { return 0; }
  return std::min(1.0, std::chrono::duration<double>{moved} / (now - earlier));
}

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/neighbor_busy.hpp>

#include <algorithm>
#include <utility>

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

std::optional<double> fraction_of_others(neighbor_load const& load, neighbor_watch& watch) noexcept
{
  auto const asked = std::exchange(watch.asked, {});
  auto const late  = std::exchange(watch.late, {});
  if (!load.links || load.links->most_bytes == 0) {
    bool const ours = asked.to_bytes + asked.from_bytes + late.to_bytes + late.from_bytes > 0;
    return ours ? std::nullopt : load.link_fraction;
  }
  // Of an older look nothing is late any more: it would hide others' traffic for ever.
  auto const of_others = [](std::uint64_t seen, std::uint64_t now, std::uint64_t then, auto& rest) {
    auto const ours = now + then;
    rest            = std::min(now, ours - std::min(ours, seen));
    return seen - std::min(seen, ours);
  };
  auto const& links = *load.links;
  auto const received =
    of_others(links.received_bytes, asked.to_bytes, late.to_bytes, watch.late.to_bytes);
  auto const sent =
    of_others(links.sent_bytes, asked.from_bytes, late.from_bytes, watch.late.from_bytes);
  return static_cast<double>(std::max(received, sent)) / static_cast<double>(links.most_bytes);
}

}  // namespace rmm_uvm

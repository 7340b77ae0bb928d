// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/harvest_rule.hpp>
#include <rmm_uvm/residency/neighbor_places.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace rmm_uvm {

std::size_t missing_reserve(neighbor_state& state,
                            std::size_t free_bytes,
                            std::size_t reserve_bytes) noexcept
{
  auto const level = std::min(state.answered_bytes, reserve_bytes);
  auto const risen = less(free_bytes, std::exchange(state.seen_bytes, free_bytes));
  if (state.owed_bytes == 0) { state.unseen_bytes = 0; }
  state.owed_bytes   = less(state.owed_bytes, less(risen, state.unseen_bytes));
  state.unseen_bytes = less(state.unseen_bytes, risen);
  if (free_bytes < level) {
    auto const missing   = va_block_ceil(level - free_bytes);
    state.answered_bytes = less(level, missing);
    return missing;
  }
  // Free memory has risen after all: from there on it counts again.
  if (risen > 0 || state.answered_bytes > reserve_bytes) {
    state.answered_bytes = std::min(free_bytes, reserve_bytes);
  }
  if (free_bytes >= reserve_bytes) { state.owed_bytes = 0; }
  return 0;
}

void gave_back(neighbor_state& state, std::size_t bytes) noexcept
{
  state.owed_bytes = less(state.owed_bytes, bytes);
  state.unseen_bytes += bytes;
}

std::optional<std::size_t> choose_neighbor(std::span<neighbor_state const> states,
                                           unsigned passed_over) noexcept
{
  std::optional<std::size_t> best;
  for (std::size_t number = 0; number < states.size(); ++number) {
    auto const& state = states[number];
    bool const passed = ((passed_over >> number) & 1U) != 0;
    if (passed || state.given_up || state.busy || state.room_bytes() < va_block_bytes) { continue; }
    auto const rank = [](neighbor_state const& of) {
      return std::pair{of.moving_bytes, ~of.room_bytes()};
    };
    if (!best || rank(state) < rank(states[*best])) { best = number; }
  }
  return best;
}

std::vector<memory_range> interleaved(std::span<std::vector<memory_range> const> places)
{
  struct slot {
    double when;  // how far its place's list has got with it
    std::size_t place;
    memory_range range;
  };
  std::vector<slot> slots;
  for (std::size_t place = 0; place < places.size(); ++place) {
    auto const step = 1.0 / static_cast<double>(places[place].size() + 1);
    for (std::size_t number = 0; number < places[place].size(); ++number) {
      slots.push_back({step * static_cast<double>(number + 1), place, places[place][number]});
    }
  }
  std::sort(slots.begin(), slots.end(), [](slot const& a, slot const& b) {
    return std::tie(a.when, a.place) < std::tie(b.when, b.place);
  });
  std::vector<memory_range> found;
  found.reserve(slots.size());
  for (auto const& each : slots) {
    found.push_back(each.range);
  }
  return found;
}

}  // namespace rmm_uvm

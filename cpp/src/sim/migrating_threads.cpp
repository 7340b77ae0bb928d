// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/migrating_threads.hpp>

#include <algorithm>

namespace rmm_uvm::sim {

/** @brief Of threads that do it together the one that is free first, as they share out a list. */
unsigned migrating_threads::lane_for(simulated_node::turn const& model,
                                     memory_range range,
                                     bool fetches) noexcept
{
  auto& those = own();
  if (those.count == 0) { return lane(); }
  auto const first   = simulated_node::together_lane(beside_);
  auto const time_of = [&](unsigned thread) { return model->lane_ns(first + thread); };
  auto begin         = 0U;
  auto end           = static_cast<unsigned>(those.count);
  if (fetches && in_turn(those)) {  // half of them for each of two places
    bool const from_host      = model->resident_bytes(range, uvm_model::host) > 0;
    (from_host ? begin : end) = end / 2;
  }
  auto free    = begin;
  bool goes_on = those.latest[free] == range.address;
  for (auto thread = begin + 1; thread < end && !goes_on; ++thread) {
    // Whoever moved a piece half of its way moves it on.
    goes_on = those.latest[thread] == range.address;
    if (goes_on || time_of(thread) < time_of(free)) { free = thread; }
  }
  those.latest[free] = range.address;
  those.fetch        = those.fetch || fetches;
  return first + free;
}

void migrating_threads::begin_together(simulated_node::turn const& model,
                                       std::size_t threads) noexcept
{
  auto& those = own();
  if (those.begun++ == 0 && lanes_) {
    those.count      = std::min<std::size_t>(threads, simulated_node::most_together);
    those.latest     = {};
    those.fetch      = false;
    those.begin_ns   = 0;
    auto const first = simulated_node::together_lane(beside_);
    for (unsigned thread = 0; thread < those.count; ++thread) {
      model->run_as(gpu_, first + thread);
      model->wait_for_lane(lane());
      those.begin_ns = model->now_ns();
    }
  }
}

void migrating_threads::end_together(simulated_node::turn const& model) noexcept
{
  auto& those = own();
  if (those.begun == 0) { return; }
  --those.begun;
  if (those.begun > 0) { return; }
  auto const first = simulated_node::together_lane(beside_);
  model->run_as(gpu_, lane());
  auto const ends = [&](std::size_t begin, std::size_t end) {
    auto latest = those.begin_ns;
    for (auto thread = begin; thread < end; ++thread) {
      latest = std::max(latest, model->lane_ns(first + static_cast<unsigned>(thread)));
    }
    return latest;
  };
  if (!those.fetch || !in_turn(those)) {
    model->wait_until(ends(0, those.count));
  } else {  // what both took
    auto const half = those.count / 2;
    model->wait_until(ends(0, half) + ends(half, those.count) - those.begin_ns);
  }
  those.count = 0;
}

}  // namespace rmm_uvm::sim

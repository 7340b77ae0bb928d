// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Migrations of the simulated device past libcuda: whoever calls waits, several threads at once.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm::sim {

void simulated_device::migrate_beside(bool beside) noexcept
{
  auto const model = enter();
  beside_          = beside;
}

unsigned simulated_device::migrating_lane() const noexcept
{
  return beside_ && node_->config().beside ? simulated_node::beside_lane : 0;
}

/** @brief Of threads that do it together the one that is free first, as they share out a list. */
unsigned simulated_device::lane_for(simulated_node::turn const& model,
                                    memory_range range,
                                    bool fetches) noexcept
{
  auto& those = together_[beside_ ? 1 : 0];
  if (those.count == 0) { return migrating_lane(); }
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

status simulated_device::migrate(memory_range range, location where) noexcept
try {
  auto const model = enter();
  if (auto const failure = injected("migrate")) { return *failure; }
  if (!info_.direct_migration.available) { return failed(status_code::not_supported, "migrate"); }
  auto const there = place(where);
  bool const other = there >= 0 && std::cmp_not_equal(there, gpu_);
  if (there == nowhere || (other && !node_->reaches(gpu_, static_cast<unsigned>(there)))) {
    return failed(status_code::invalid_value, "migrate");
  }
  model->run_as(gpu_, lane_for(model, range, std::cmp_equal(there, gpu_)));
  return noted(finish(model, model->migrate(range, there)), range, where);
} catch (...) {
  return failed(status_code::out_of_memory, "migrate");
}

bool simulated_device::migrates_to(location where) noexcept
{
  if (!info_.direct_migration.available) { return false; }
  auto const there = place(where);
  if (there < 0) { return there == uvm_model::host; }
  return std::cmp_equal(there, gpu_) || node_->reaches(gpu_, static_cast<unsigned>(there));
}

std::size_t simulated_device::begin_together(std::size_t threads) noexcept
{
  auto const model = enter();
  if (!info_.direct_migration.available) { return threads; }
  auto& those = together_[beside_ ? 1 : 0];
  if (those.begun++ == 0 && node_->config().beside) {
    those.count      = std::min<std::size_t>(threads, simulated_node::most_together);
    those.latest     = {};
    those.fetch      = false;
    those.begin_ns   = 0;
    auto const first = simulated_node::together_lane(beside_);
    for (unsigned thread = 0; thread < those.count; ++thread) {
      model->run_as(gpu_, first + thread);
      model->wait_for_lane(migrating_lane());
      those.begin_ns = model->now_ns();
    }
  }
  return 1;
}

void simulated_device::end_together() noexcept
{
  auto const model = enter();
  auto& those      = together_[beside_ ? 1 : 0];
  if (those.begun == 0) { return; }
  --those.begun;
  if (those.begun > 0) { return; }
  auto const first = simulated_node::together_lane(beside_);
  model->run_as(gpu_, migrating_lane());
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

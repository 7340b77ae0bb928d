// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/simulated_counters.hpp>

#include <algorithm>
#include <atomic>
#include <vector>

namespace rmm_uvm::sim {

availability simulated_counters::available() const
{
  if (auto const planned = answers_.refusal_met_by("available")) { return *planned; }
  return counted_ ? availability::yes()
                  : availability::no("the simulated device was made without counters");
}

migration_totals simulated_counters::read() const noexcept
{
  if (!counted_) { return {}; }
  auto const& counted = gpu_.account();
  return {counted.host_to_device_bytes.load(std::memory_order_relaxed),
          counted.device_to_host_bytes.load(std::memory_order_relaxed),
          counted.cpu_faults.load(std::memory_order_relaxed),
          counted.gpu_faults.load(std::memory_order_relaxed)};
}

availability simulated_counters::request_faults() const
{
  if (auto const planned = answers_.refusal_met_by("request_faults")) { return *planned; }
  auto const counted = available();
  if (counted.available) { gpu_.account().fault_requests.fetch_add(1, std::memory_order_relaxed); }
  return counted;
}

void simulated_counters::release_faults() const noexcept
{
  gpu_.account().fault_requests.fetch_sub(1, std::memory_order_relaxed);
}

availability simulated_counters::attach(migration_tally& tally) const
{
  if (!counted_) { return available(); }
  if (!migrates_.available) { return migrates_; }
  auto const model = gpu_.enter();
  auto& tallies    = gpu_.account().tallies;
  if (std::find(tallies.begin(), tallies.end(), &tally) == tallies.end()) {
    tallies.push_back(&tally);
  }
  return availability::yes();
}

void simulated_counters::detach(migration_tally& tally) const noexcept
{
  auto const model = gpu_.enter();
  std::erase(gpu_.account().tallies, &tally);
}

}  // namespace rmm_uvm::sim

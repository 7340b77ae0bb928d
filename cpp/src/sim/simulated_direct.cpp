// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Migrations of the simulated device past libcuda: whoever calls waits, several threads at once.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <utility>

namespace rmm_uvm::sim {

void simulated_device::migrate_beside(bool beside) noexcept
{
  auto const model = enter();
  migrating_.migrate_beside(beside);
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
  model->run_as(gpu_, migrating_.lane_for(model, range, std::cmp_equal(there, gpu_)));
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
  migrating_.begin_together(model, threads);
  return 1;
}

void simulated_device::end_together() noexcept
{
  auto const model = enter();
  migrating_.end_together(model);
}

}  // namespace rmm_uvm::sim

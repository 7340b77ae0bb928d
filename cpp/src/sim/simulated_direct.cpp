// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Migrations of the simulated device past libcuda: whoever calls waits, several threads at once.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <utility>

namespace rmm_uvm::sim {

status simulated_device::migrate(memory_range range, location where) noexcept
try {
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("migrate")) { return *failure; }
  if (!info_.direct_migration.available) { return failed(status_code::not_supported, "migrate"); }
  auto const there = gpu_.place(where);
  if (!gpu_.reaches(there)) { return failed(status_code::invalid_value, "migrate"); }
  model->run_as(gpu_.number(),
                threads_.lane_for(model, range, std::cmp_equal(there, gpu_.number())));
  return noted(gpu_.finish(model, model->migrate(range, there)), range, where);
} catch (...) {
  return failed(status_code::out_of_memory, "migrate");
}

bool simulated_device::migrates_to(location where) noexcept
{
  return info_.direct_migration.available && gpu_.reaches(gpu_.place(where));
}

std::size_t simulated_device::begin_together(std::size_t threads) noexcept
{
  auto const model = gpu_.enter();
  if (!info_.direct_migration.available) { return threads; }
  threads_.begin_together(model, threads);
  return 1;
}

void simulated_device::end_together() noexcept
{
  auto const model = gpu_.enter();
  threads_.end_together(model);
}

}  // namespace rmm_uvm::sim

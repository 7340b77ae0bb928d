// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the links of the simulated device carry.
#include <rmm_uvm/driver/link_measurement.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <cstdint>
#include <limits>

namespace rmm_uvm::sim {

/**
 * @brief Measures on a device of the same machine that is made for it.
 *
 * The answer follows from the machine profile alone, and nothing of this device is moved, counted
 * or takes time.
 */
status simulated_device::measure_links(int device_id, std::size_t bytes, link_rates& rates) noexcept
try {
  constexpr int alone    = 0;
  constexpr int neighbor = 1;
  auto const where       = location{device_id};
  auto config            = config_;
  {
    auto const model = gpu_.enter();
    if (auto const failure = answers_.met_by("measure_links")) { return *failure; }
    if (gpu_.place(where) == node_gpu::nowhere || device_id == gpu_.ordinal()) {
      return failed(status_code::invalid_value, "measure_links");
    }
  }
  config.capacity_bytes = va_block_ceil(bytes) + va_block_bytes;
  config.host_bytes     = std::numeric_limits<std::size_t>::max();
  config.backing        = false;
  config.device_id      = alone;
  config.neighbors      = neighbor;
  config.machine        = gpu_.node().config().machine;
  config.driver         = gpu_.node().config().driver;
  simulated_device device{config};
  auto const modelled_ns = [&device] {
    return static_cast<std::int64_t>(device.view().statistics().modelled_ns);
  };
  link_measurement measurement{device, modelled_ns};
  return measurement.measure(where.is_host() ? location::host_id : neighbor, bytes, rates);
} catch (...) {
  return failed(status_code::out_of_memory, "measure_links");
}

}  // namespace rmm_uvm::sim

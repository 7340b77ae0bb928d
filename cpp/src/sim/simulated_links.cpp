// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the links of the simulated device carry, and how busy its neighbours are.
#include <rmm_uvm/driver/link_measurement.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <limits>
#include <utility>

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
    auto const model = enter();
    if (auto const failure = injected("measure_links")) { return *failure; }
    if (place(where) == nowhere || device_id == info_.device_id) {
      return {status_code::invalid_value, 0, "measure_links"};
    }
  }
  config.capacity_bytes = va_block_ceil(bytes) + va_block_bytes;
  config.host_bytes     = std::numeric_limits<std::size_t>::max();
  config.backing        = false;
  config.device_id      = alone;
  config.neighbors      = neighbor;
  config.machine        = node_->config().machine;
  config.driver         = node_->config().driver;
  simulated_device device{config};
  auto const modelled_ns = [&device] {
    return static_cast<std::int64_t>(device.statistics().modelled_ns);
  };
  link_measurement measurement{device, modelled_ns};
  return measurement.measure(where.is_host() ? location::host_id : neighbor, bytes, rates);
} catch (...) {
  return {status_code::out_of_memory, 0, "measure_links"};
}

status simulated_device::set_neighbor_load(int device_id, neighbor_load const& load) noexcept
try {
  auto const model = enter();
  auto const there = place(location::device(device_id));
  if (there < 0) { return {status_code::invalid_value, 0, "set_neighbor_load"}; }
  neighbor_loads_[device_id] = load;
  return {};
} catch (...) {
  return {status_code::out_of_memory, 0, "set_neighbor_load"};
}

status simulated_device::read_neighbor_load(int device_id, neighbor_load& load) noexcept
try {
  constexpr char const* call = "read_neighbor_load";
  auto const model           = enter();
  if (auto const failure = injected(call)) { return *failure; }
  auto const there = place(location::device(device_id));
  if (there < 0) { return {status_code::invalid_value, 0, call}; }
  auto const found = neighbor_loads_.find(device_id);
  if (found == neighbor_loads_.end()) { return {status_code::not_supported, 0, call}; }
  load = found->second;
  return {};
} catch (...) {
  return {status_code::out_of_memory, 0, "read_neighbor_load"};
}

}  // namespace rmm_uvm::sim

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Places of the simulated device: its own memory, the host's, and that of its neighbours.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace rmm_uvm::sim {

int simulated_device::place(location where) const noexcept
{
  if (where.is_host()) { return uvm_model::host; }
  auto const id  = where.device_id;
  auto const own = static_cast<int>(gpu_);
  if (id == info_.device_id) { return own; }
  return id < 0 || id == own || std::cmp_greater_equal(id, node_->config().gpus) ? nowhere : id;
}

int simulated_device::device_count() noexcept
{
  return std::max(static_cast<int>(node_->config().gpus), info_.device_id + 1);
}

availability simulated_device::open_neighbor(int device_id)
{
  if (auto const planned = planned_refusal("open_neighbor")) { return *planned; }
  auto const there = place(location::device(device_id));
  auto const name  = "device " + std::to_string(device_id);
  if (std::cmp_equal(there, gpu_)) { return availability::no(name + " is the device itself"); }
  if (there < 0) {
    return availability::no(name + " does not exist: the simulated device has " +
                            std::to_string(node_->config().gpus - 1) + " neighbours");
  }
  return node_->peer_access(gpu_, static_cast<unsigned>(there));
}

status simulated_device::neighbor_uuid(int device_id, std::array<std::uint8_t, 16>& uuid) noexcept
{
  auto const there = place(location::device(device_id));
  if (there < 0 || std::cmp_equal(there, gpu_)) {
    return failed(status_code::invalid_value, "neighbor_uuid");
  }
  uuid = uuid_of(static_cast<unsigned>(there));
  return {};
}

status simulated_device::neighbor_memory(int device_id, device_memory& memory) noexcept
{
  auto const model = enter();
  if (auto const failure = injected("neighbor_memory")) { return *failure; }
  auto const there = place(location::device(device_id));
  if (there < 0 || std::cmp_equal(there, gpu_)) {
    return failed(status_code::invalid_value, "neighbor_memory");
  }
  memory = {model->free_bytes(static_cast<unsigned>(there)), info_.total_bytes};
  return {};
}

status simulated_device::occupy_neighbor(int device_id, std::size_t bytes) noexcept
{
  auto const there = place(location::device(device_id));
  if (there < 0 || std::cmp_equal(there, gpu_)) {
    return failed(status_code::invalid_value, "occupy_neighbor");
  }
  return node_->occupy(static_cast<unsigned>(there), bytes);
}

std::size_t simulated_device::resident_bytes(memory_range range, location where) const noexcept
{
  auto const model = enter();
  auto const found = model->range_of(range.address);
  if (!found || range.bytes == 0 || place(where) == nowhere) { return 0; }
  auto const rest = found->end() - range.address;
  return model->resident_bytes({range.address, std::min(range.bytes, rest)}, place(where));
}

}  // namespace rmm_uvm::sim

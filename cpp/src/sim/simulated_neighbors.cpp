// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/simulated_neighbors.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace rmm_uvm::sim {

status simulated_neighbors::occupy(int device_id, std::size_t bytes) noexcept
{
  auto const there = gpu_.neighbor(device_id);
  if (!there) { return failed(status_code::invalid_value, "occupy_neighbor"); }
  return gpu_.node().occupy(*there, bytes);
}

status simulated_neighbors::set_load(int device_id, neighbor_load const& load) noexcept
try {
  auto const model = gpu_.enter();
  if (gpu_.place(location::device(device_id)) < 0) {
    return failed(status_code::invalid_value, "set_neighbor_load");
  }
  loads_[device_id] = load;
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "set_neighbor_load");
}

int simulated_neighbors::device_count() const noexcept
{
  return std::max(static_cast<int>(gpu_.node().config().gpus), gpu_.ordinal() + 1);
}

availability simulated_neighbors::open(int device_id) const
{
  if (auto const planned = answers_.refusal_met_by("open_neighbor")) { return *planned; }
  auto const there = gpu_.place(location::device(device_id));
  auto const name  = "device " + std::to_string(device_id);
  if (std::cmp_equal(there, gpu_.number())) {
    return availability::no(name + " is the device itself");
  }
  if (there < 0) {
    return availability::no(name + " does not exist: the simulated device has " +
                            std::to_string(gpu_.node().config().gpus - 1) + " neighbours");
  }
  return gpu_.node().peer_access(gpu_.number(), static_cast<unsigned>(there));
}

status simulated_neighbors::uuid(int device_id, std::array<std::uint8_t, 16>& uuid) const noexcept
{
  auto const there = gpu_.neighbor(device_id);
  if (!there) { return failed(status_code::invalid_value, "neighbor_uuid"); }
  uuid = node_gpu::uuid_of(*there);
  return {};
}

status simulated_neighbors::memory(int device_id, device_memory& memory) const noexcept
{
  auto const model = gpu_.enter();
  if (auto const failure = answers_.met_by("neighbor_memory")) { return *failure; }
  auto const there = gpu_.neighbor(device_id);
  if (!there) { return failed(status_code::invalid_value, "neighbor_memory"); }
  memory = {model->free_bytes(*there), gpu_.node().config().capacity_bytes};
  return {};
}

status simulated_neighbors::read_load(int device_id, neighbor_load& load) const noexcept
{
  constexpr char const* call = "read_neighbor_load";
  auto const model           = gpu_.enter();
  if (auto const failure = answers_.met_by(call)) { return *failure; }
  if (gpu_.place(location::device(device_id)) < 0) {
    return failed(status_code::invalid_value, call);
  }
  auto const found = loads_.find(device_id);
  if (found == loads_.end()) { return failed(status_code::not_supported, call); }
  load = found->second;
  return {};
}

}  // namespace rmm_uvm::sim

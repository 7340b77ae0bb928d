// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Places of the simulated device: its own memory, the host's, and that of its neighbours.
#include <rmm_uvm/sim/simulated_device.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace rmm_uvm::sim {
namespace {

[[nodiscard]] constexpr status failed(status_code code, char const* call) noexcept
{
  return {code, 0, call};
}

}  // namespace

int simulated_device::place(location where) const noexcept
{
  if (where.is_host()) { return uvm_model::host; }
  auto const id = where.device_id;
  if (id == info_.device_id) { return 0; }
  if (id < 0 || std::cmp_greater(id, config_.neighbors)) { return nowhere; }
  return id < info_.device_id ? id + 1 : id;
}

int simulated_device::device_count() noexcept
{
  return std::max(static_cast<int>(config_.neighbors), info_.device_id) + 1;
}

availability simulated_device::open_neighbor(int device_id)
{
  auto const name = "device " + std::to_string(device_id);
  switch (place(location::device(device_id))) {
    case 0: return availability::no(name + " is the device itself");
    case nowhere:
      return availability::no(name + " does not exist: the simulated device was made with " +
                              std::to_string(config_.neighbors) + " neighbours");
    default: return availability::yes();
  }
}

status simulated_device::neighbor_memory(int device_id, device_memory& memory) noexcept
{
  std::lock_guard const lock{mutex_};
  if (auto const failure = injected("neighbor_memory")) { return *failure; }
  auto const there = place(location::device(device_id));
  if (there <= 0) { return failed(status_code::invalid_value, "neighbor_memory"); }
  memory = {model_.free_bytes(static_cast<unsigned>(there)), config_.capacity_bytes};
  return {};
}

status simulated_device::occupy_neighbor(int device_id, std::size_t bytes) noexcept
try {
  std::lock_guard const lock{mutex_};
  auto const there = place(location::device(device_id));
  if (there <= 0) { return failed(status_code::invalid_value, "occupy_neighbor"); }
  auto const gpu   = static_cast<unsigned>(there);
  auto const taken = model_.levels(gpu).device_bytes;
  if (bytes <= taken) {
    model_.free_device(gpu, taken - bytes);
    return finish({});
  }
  return finish(model_.allocate_device(gpu, bytes - taken));
} catch (...) {
  return failed(status_code::out_of_memory, "occupy_neighbor");
}

std::size_t simulated_device::resident_bytes(memory_range range, location where) const noexcept
{
  std::lock_guard const lock{mutex_};
  auto const found = model_.range_of(range.address);
  if (!found || range.bytes == 0 || place(where) == nowhere) { return 0; }
  auto const rest = found->end() - range.address;
  return model_.resident_bytes({range.address, std::min(range.bytes, rest)}, place(where));
}

}  // namespace rmm_uvm::sim

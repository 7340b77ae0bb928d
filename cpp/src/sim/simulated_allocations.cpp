// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/simulated_allocations.hpp>

#include <iterator>
#include <utility>

namespace rmm_uvm::sim {
namespace {

/** @brief cudaMalloc hands out multiples of this. Source: seen on an H200, CUDA 13.0. */
constexpr std::size_t device_granularity_bytes = 512;

}  // namespace

status simulated_allocations::allocate_managed(simulated_node::turn const& model,
                                               std::size_t bytes,
                                               std::uintptr_t& address)
{
  if (bytes == 0) { return failed(status_code::invalid_value, "allocate_managed"); }
  address_range addresses{bytes, backing_ ? backing_kind::own : backing_kind::none};
  auto const taken = addresses.address();
  if (taken == 0) { return failed(status_code::out_of_memory, "allocate_managed"); }
  auto const entered = managed_.emplace(taken, std::move(addresses)).first;
  try {
    model->add_range({taken, bytes});
  } catch (...) {
    managed_.erase(entered);
    throw;
  }
  address = taken;
  return gpu_.finish(model, {});
}

status simulated_allocations::free_managed(simulated_node::turn const& model,
                                           std::uintptr_t address) noexcept
{
  if (!model->remove_range(address)) { return failed(status_code::invalid_value, "free_managed"); }
  managed_.erase(address);
  return gpu_.finish(model, {});
}

status simulated_allocations::allocate_device(simulated_node::turn const& model,
                                              std::size_t bytes,
                                              std::uintptr_t& address)
{
  if (bytes == 0) { return failed(status_code::invalid_value, "allocate_device"); }
  // Before the rounding, which could overflow.
  if (bytes > gpu_.node().config().capacity_bytes) {
    return failed(status_code::out_of_memory, "allocate_device");
  }
  auto const rounded =
    (bytes + device_granularity_bytes - 1) / device_granularity_bytes * device_granularity_bytes;
  // Shared: as cudaMalloc memory, and as managed memory cannot, it can be opened by others.
  device_allocation allocation{
    rounded, address_range{rounded, backing_ ? backing_kind::shared : backing_kind::none}};
  auto const taken = allocation.addresses.address();
  if (taken == 0) { return failed(status_code::out_of_memory, "allocate_device"); }
  auto const entered = device_.emplace(taken, std::move(allocation)).first;
  try {
    auto const made = model->allocate_device(gpu_.number(), rounded);
    if (made.ok()) {
      address = taken;
    } else {
      device_.erase(entered);
    }
    return gpu_.finish(model, made);
  } catch (...) {
    device_.erase(entered);
    throw;
  }
}

status simulated_allocations::free_device(simulated_node::turn const& model,
                                          std::uintptr_t address) noexcept
{
  auto const it = device_.find(address);
  if (it == device_.end()) { return failed(status_code::invalid_value, "free_device"); }
  model->free_device(gpu_.number(), it->second.bytes);
  device_.erase(it);
  return gpu_.finish(model, {});
}

void simulated_allocations::leave(simulated_node::turn const& model) noexcept
{
  for (auto const& [address, addresses] : managed_) {
    static_cast<void>(model->remove_range(address));
  }
  for (auto const& [address, allocation] : device_) {
    model->free_device(gpu_.number(), allocation.bytes);
  }
  managed_.clear();
  device_.clear();
}

std::optional<memory_kind> simulated_allocations::find(simulated_node::turn const& model,
                                                       std::uintptr_t address) const noexcept
{
  if (auto const found = model->range_of(address)) {
    return memory_kind{true, false, found->address, found->bytes, gpu_.ordinal()};
  }
  auto const after = device_.upper_bound(address);
  if (after == device_.begin()) { return std::nullopt; }
  auto const it = std::prev(after);
  if (address - it->first >= it->second.bytes) { return std::nullopt; }
  return memory_kind{false, true, it->first, it->second.bytes, gpu_.ordinal()};
}

int simulated_allocations::descriptor(simulated_node::turn const&,
                                      std::uintptr_t base) const noexcept
{
  auto const it = device_.find(base);
  return it == device_.end() ? -1 : it->second.addresses.descriptor();
}

}  // namespace rmm_uvm::sim

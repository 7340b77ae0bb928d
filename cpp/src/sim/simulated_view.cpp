// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/simulated_view.hpp>

#include <algorithm>

namespace rmm_uvm::sim {

simulated_statistics simulated_view::statistics() const noexcept
{
  auto const model    = gpu_.enter();
  auto const& counted = model->counters(gpu_.number());
  auto const& levels  = model->levels(gpu_.number(), gpu_.number());
  auto const& all     = model->levels(gpu_.number());
  return {.host_to_device_bytes  = counted.to_device_bytes,
          .device_to_host_bytes  = counted.to_host_bytes,
          .evicted_bytes         = counted.evicted_bytes,
          .evicted_blocks        = counted.evicted_blocks,
          .dropped_bytes         = counted.dropped_bytes,
          .gpu_fault_groups      = counted.fault_services,
          .gpu_faults            = counted.gpu_faults,
          .cpu_faults            = counted.cpu_faults,
          .modelled_ns           = static_cast<std::uint64_t>(model->now_ns()),
          .managed_bytes         = counted.managed_bytes,
          .device_bytes          = all.device_bytes,
          .resident_bytes        = levels.resident_bytes,
          .peak_resident_bytes   = levels.peak_resident_bytes,
          .host_page_bytes       = counted.host_page_bytes,
          .neighbor_bytes        = counted.resident_bytes - levels.resident_bytes,
          .lent_bytes            = all.resident_bytes - levels.resident_bytes,
          .to_third_tier_bytes   = counted.to_third_tier_bytes,
          .from_third_tier_bytes = counted.from_third_tier_bytes,
          .third_tier_bytes      = counted.third_tier_bytes};
}

std::size_t simulated_view::resident_bytes(memory_range range, location where) const noexcept
{
  auto const model = gpu_.enter();
  auto const found = model->range_of(range.address);
  if (!found || range.bytes == 0 || gpu_.place(where) == node_gpu::nowhere) { return 0; }
  auto const rest = found->end() - range.address;
  return model->resident_bytes({range.address, std::min(range.bytes, rest)}, gpu_.place(where));
}

block_policy simulated_view::advised(std::uintptr_t address) const noexcept
{
  auto const model = gpu_.enter();
  return model->advised(address);
}

std::optional<memory_kind> simulated_view::find_memory(std::uintptr_t address) const noexcept
{
  auto const model = gpu_.enter();
  return allocations_.find(model, address);
}

int simulated_view::shared_descriptor(std::uintptr_t base) const noexcept
{
  auto const model = gpu_.enter();
  return allocations_.descriptor(model, base);
}

}  // namespace rmm_uvm::sim

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/cupti_records.hpp>

#include <algorithm>
#include <cstddef>

namespace rmm_uvm::cuda {
namespace {

// The seam took over CUPTI's order.
static_assert(static_cast<int>(migration_cause::user) ==
                CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER &&
              static_cast<int>(migration_cause::coherence) ==
                CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE &&
              static_cast<int>(migration_cause::prefetch) ==
                CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH &&
              static_cast<int>(migration_cause::eviction) ==
                CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION &&
              static_cast<int>(migration_cause::access_counters) ==
                CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_ACCESS_COUNTERS);

[[nodiscard]] migration_cause cause_of(std::uint32_t flags) noexcept
{
  return flags < migration_cause_count ? static_cast<migration_cause>(flags)
                                       : migration_cause::unknown;
}

[[nodiscard]] bool concerns(std::uint32_t device, std::span<std::uint32_t const> devices) noexcept
{
  return devices.empty() || std::find(devices.begin(), devices.end(), device) != devices.end();
}

[[nodiscard]] bool among_processors(CUpti_ActivityUnifiedMemoryCounter3 const& record,
                                    std::span<std::uint32_t const> devices) noexcept
{
  constexpr std::uint32_t bits = 64;
  bool names_any               = false;
  for (std::uint32_t word = 0; word < sizeof record.processors / sizeof(std::uint64_t); ++word) {
    std::uint64_t const mask = record.processors[word];
    names_any |= mask != 0;
    for (auto const device : devices) {
      if (device / bits == word && ((mask >> (device % bits)) & 1U) != 0) { return true; }
    }
  }
  return devices.empty() || !names_any;
}

}  // namespace

void count_record(CUpti_ActivityUnifiedMemoryCounter3 const& record,
                  std::span<std::uint32_t const> devices,
                  migration_tally& tally) noexcept
{
  memory_range const pages{record.address, record.value};
  switch (record.counterKind) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
      if (concerns(record.dstId, devices)) { tally.to_device(cause_of(record.flags), pages); }
      return;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
      if (concerns(record.srcId, devices)) { tally.to_host(cause_of(record.flags), pages); }
      return;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD:
      if (concerns(record.dstId, devices)) {
        tally.count(&cause_totals::device_to_device_bytes, record.value);
      }
      return;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT:
      tally.count(&cause_totals::cpu_faults, 1);
      return;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
      if (concerns(record.srcId, devices)) {
        tally.count(&cause_totals::gpu_fault_groups, record.value);
      }
      return;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING:
      if (among_processors(record, devices)) {
        tally.count(&cause_totals::thrashing_bytes, record.value);
      }
      return;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING:
      if ((concerns(record.srcId, devices) || record.srcId == CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID) &&
          record.end > record.start) {
        tally.count(&cause_totals::throttling_ns, record.end - record.start);
      }
      return;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP:
      if (concerns(record.srcId, devices) || concerns(record.dstId, devices)) {
        tally.count(&cause_totals::remote_map_bytes, record.value);
      }
      return;
    default: return;  // a kind that a newer CUPTI invents, and that was not asked for
  }
}

}  // namespace rmm_uvm::cuda

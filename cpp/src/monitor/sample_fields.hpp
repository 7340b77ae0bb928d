// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/sample.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace rmm_uvm::monitor {

/** @brief The wide fields of a sample in the order of its layout; new ones at the end. */
inline constexpr std::array<std::uint64_t sample::*, 14> sample_fields{
  &sample::time_ns,
  &sample::host_to_device_bytes,
  &sample::device_to_host_bytes,
  &sample::own_to_host_bytes,
  &sample::evicted_bytes_estimate,
  &sample::prefetched_bytes,
  &sample::discarded_bytes,
  &sample::cpu_faults,
  &sample::gpu_faults,
  &sample::footprint_bytes,
  &sample::managed_bytes,
  &sample::resident_bytes,
  &sample::device_used_bytes,
  &sample::waited_ns,
};
static_assert(sizeof(sample) == (sample_fields.size() + 1) * sizeof(std::uint64_t));

/** @brief The bit of `known` in a trace's masks: traces are kept, so it stays where it was. */
inline constexpr std::size_t known_place         = 13;
inline constexpr std::uint64_t known_changed     = std::uint64_t{1} << known_place;
inline constexpr std::uint64_t end_of_field_bits = std::uint64_t{1} << (sample_fields.size() + 1);

/** @brief The bit of a wide field in a trace's masks. */
[[nodiscard]] constexpr std::uint64_t field_changed(std::size_t field) noexcept
{
  return std::uint64_t{1} << (field < known_place ? field : field + 1);
}

}  // namespace rmm_uvm::monitor

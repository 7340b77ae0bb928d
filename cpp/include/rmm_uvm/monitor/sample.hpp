// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

namespace rmm_uvm::monitor {

/** @brief What is known in a sample; bits of `sample::known`. */
enum sample_known : std::uint32_t {
  counters_known = 1U << 0U,  ///< bytes each way
  faults_known   = 1U << 1U,  ///< CPU and GPU faults
  footprint_known =
    1U << 2U,                 ///< footprint; managed, prefetched and discarded bytes, waits if ours
  device_known   = 1U << 3U,  ///< device memory in use
  resident_known = 1U << 4U,  ///< resident bytes
  resident_exact = 1U << 5U,  ///< ... and they are exact, no estimate
};

/**
 * @brief One row: totals since the sampler began, and levels now, of one device.
 *
 * The layout is part of the interface: Python reads it as a NumPy structured array
 * (rmm_uvm/recording/sample.py), so that a day at one sample a second takes less than 10 MiB.
 */
struct sample {
  std::uint64_t time_ns{0};                 ///< of the sampler's clock, since it began
  std::uint64_t host_to_device_bytes{0};    ///< total moved to the device
  std::uint64_t device_to_host_bytes{0};    ///< total moved to the host
  std::uint64_t own_to_host_bytes{0};       ///< total that this package asked to move to the host
  std::uint64_t evicted_bytes_estimate{0};  ///< total of the rest, seen while the device was full
  std::uint64_t prefetched_bytes{0};   ///< total that came as this package prefetched it: at most
  std::uint64_t discarded_bytes{0};    ///< total that was not copied as it was discarded: at most
  std::uint64_t cpu_faults{0};         ///< total
  std::uint64_t gpu_faults{0};         ///< total
  std::uint64_t footprint_bytes{0};    ///< level
  std::uint64_t managed_bytes{0};      ///< level
  std::uint64_t resident_bytes{0};     ///< level; an estimate unless resident_exact
  std::uint64_t device_used_bytes{0};  ///< level, of all processes
  std::uint64_t waited_ns{0};          ///< total in which requests waited, by a budget's count
  std::int32_t device_id{0};           ///< CUDA ordinal
  std::uint32_t known{0};              ///< bits of `sample_known`
};
static_assert(sizeof(sample) == 120 && std::is_trivially_copyable_v<sample>);

}  // namespace rmm_uvm::monitor

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm::sim {

/**
 * @brief Parameters of the UVM kernel driver that change its policy.
 *
 * Source of the defaults: NVIDIA/open-gpu-kernel-modules 580.142, module parameters
 * `uvm_perf_prefetch_*`.
 */
struct driver_settings {
  bool prefetch{true};                   ///< its own prefetcher on page faults
  std::uint32_t prefetch_threshold{51};  ///< percent of a region that must be there or asked for
  std::uint32_t min_faults{1};           ///< faults on a block before it prefetches
  bool two_passes{true};                 ///< a prefetch call of several blocks runs twice
  /// Memory is taken page by page, as simulators of papers have it, and not by blocks. No driver.
  bool evict_pages{false};
};

}  // namespace rmm_uvm::sim

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>

#include <cstdint>

namespace rmm_uvm {

/** @brief Totals since the counters were opened. */
struct migration_totals {
  std::uint64_t host_to_device_bytes{0};  ///< bytes copied to the device, whatever the cause
  std::uint64_t device_to_host_bytes{0};  ///< bytes copied to the host, whatever the cause
  /// Faults of the CPU on managed pages; 0 unless asked for. Of the whole process: the kernel
  /// driver counts them for no GPU, so every device shows the same, and they must not be added up.
  std::uint64_t cpu_faults{0};
  /// Faults of the GPU on managed pages; 0 unless asked for. Pages asked for: faults on the same
  /// page that are fetched together are one. The simulated device counts groups of pages.
  std::uint64_t gpu_faults{0};
};

/**
 * @brief Observations: how many bytes this process' managed memory moved, live.
 *
 * Totals rise when a copy is submitted, not when it ends. Moves between two GPUs are not counted.
 * Thread-safe: `read` is a pair of memory loads.
 */
class migration_counters {
 public:
  migration_counters()                                     = default;
  migration_counters(migration_counters const&)            = delete;
  migration_counters& operator=(migration_counters const&) = delete;
  migration_counters(migration_counters&&)                 = delete;
  migration_counters& operator=(migration_counters&&)      = delete;
  virtual ~migration_counters()                            = default;

  /** @brief Whether `read` means anything, and if not, why. */
  [[nodiscard]] virtual availability available() const = 0;
  /** @brief The totals now; zeros when not available. Never blocks. */
  [[nodiscard]] virtual migration_totals read() const noexcept = 0;

  /**
   * @brief Asks that faults be counted too: a program that only faults takes up to 10 % longer.
   * @return whether they are counted from now on. Each request that was granted is taken back by
   *         one `release_faults`; they are counted while any is standing.
   */
  [[nodiscard]] virtual availability request_faults() const
  {
    return availability::no("faults are not counted here");
  }
  /** @brief Takes one granted request back. */
  virtual void release_faults() const noexcept {}
};

}  // namespace rmm_uvm

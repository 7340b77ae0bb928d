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
};

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm {

/** @brief What is known of a memory resource, and what this package did for it. */
struct memory_levels {
  std::uint64_t footprint_bytes{0};   ///< allocated and not freed, now
  std::uint64_t managed_bytes{0};     ///< managed memory taken from the driver, now
  std::uint64_t prefetched_bytes{0};  ///< asked to come to the device so far; new slabs are empty
  std::uint64_t discarded_bytes{0};   ///< asked to be discarded so far
  std::uint64_t waited_ns{0};         ///< in which requests waited so far, by a budget's count
};

/** @brief Tells the levels of one memory resource. Thread-safe; `levels` never blocks. */
class memory_level_source {
 public:
  memory_level_source()                                      = default;
  memory_level_source(memory_level_source const&)            = delete;
  memory_level_source& operator=(memory_level_source const&) = delete;
  memory_level_source(memory_level_source&&)                 = delete;
  memory_level_source& operator=(memory_level_source&&)      = delete;
  virtual ~memory_level_source()                             = default;

  /** @brief The levels now. */
  [[nodiscard]] virtual memory_levels levels() const noexcept = 0;
};

}  // namespace rmm_uvm

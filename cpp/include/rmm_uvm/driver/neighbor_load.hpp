// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace rmm_uvm {

/** @brief What a device's links carried since the reading before, all of them together. */
struct link_traffic {
  std::uint64_t sent_bytes{0};      ///< by the device
  std::uint64_t received_bytes{0};  ///< by the device
  std::uint64_t most_bytes{0};      ///< that either way could have carried in that time
};

/**
 * @brief How busy a device is with everybody's work, at one moment; none where it is not told.
 *
 * Fractions of 1. Kernels and memory are averages of the driver's latest sampling period (NVML: a
 * sixth of a second to a second); the links' is the average since the reading before.
 */
struct neighbor_load {
  std::optional<double> kernel_fraction;  ///< of the time in which a kernel ran
  std::optional<double> memory_fraction;  ///< of the time in which its memory was read or written,
                                          ///< by copies too
  std::optional<double> link_fraction;    ///< of its rate that the busier way of its links carried,
                                          ///< our own copies included
  std::optional<link_traffic> links{};    ///< the same in bytes, where they are told
};

/** @brief Tells how busy one device is. Thread-safe. */
class neighbor_load_reader {
 public:
  neighbor_load_reader()                                       = default;
  neighbor_load_reader(neighbor_load_reader const&)            = delete;
  neighbor_load_reader& operator=(neighbor_load_reader const&) = delete;
  neighbor_load_reader(neighbor_load_reader&&)                 = delete;
  neighbor_load_reader& operator=(neighbor_load_reader&&)      = delete;
  virtual ~neighbor_load_reader()                              = default;

  /**
   * @brief Reads the load now.
   * @param[out] load set when true is returned
   * @return false when nothing of it can be told
   */
  [[nodiscard]] virtual bool read(neighbor_load& load) noexcept = 0;
};

}  // namespace rmm_uvm

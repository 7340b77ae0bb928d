// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm {

/**
 * @brief What managed memory migrates at between a device, the host and one neighbour.
 *
 * Bytes per second, seen from the device, by one thread in pieces as residency moves them; 0 where
 * it is not known.
 */
struct link_rates {
  std::uint64_t to_device_bytes_per_second{0};      ///< from the host
  std::uint64_t to_host_bytes_per_second{0};        ///< from the device
  std::uint64_t from_neighbor_bytes_per_second{0};  ///< to the device
  std::uint64_t to_neighbor_bytes_per_second{0};    ///< from the device

  /** @brief True when all are the same. */
  friend constexpr bool operator==(link_rates const&, link_rates const&) noexcept = default;
};

}  // namespace rmm_uvm

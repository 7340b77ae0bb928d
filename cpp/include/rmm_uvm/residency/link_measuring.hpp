// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/link_rates.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/managed_account.hpp>

#include <cstddef>

namespace rmm_uvm {

inline constexpr std::size_t link_measuring_bytes = std::size_t{64}
                                                    << 20U;  ///< where there is room
inline constexpr std::size_t least_link_measuring_bytes =
  std::size_t{8} << 20U;  ///< a piece: with less, calls are measured in place of links

/**
 * @brief Measures links with memory that counts under a cap: with less where less is left.
 *
 * @param account of the process; what is taken is given back before this returns
 * @param device_id an opened neighbour, or `location::host_id` for the host only
 * @param[out] rates set on success
 * @return out of memory when the cap, the device or its neighbour has less than 8 MiB left
 */
status measure_links(uvm_driver& driver,
                     managed_account& account,
                     int device_id,
                     link_rates& rates) noexcept;

}  // namespace rmm_uvm

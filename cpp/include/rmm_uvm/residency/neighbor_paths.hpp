// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/link_rates.hpp>

#include <cstddef>

namespace rmm_uvm {

/**
 * @brief How much of a burst from the host better comes by way of a neighbour.
 *
 * Over the neighbour's own link to the host, and then from it: both ways end together. It holds
 * where the two devices do not share a link to the host.
 * @param rates measured, the neighbour's link to the host taken to be like the device's; where one
 *        is not known nothing goes that way
 * @return 0 to 1
 */
[[nodiscard]] double staged_fraction(link_rates const& rates) noexcept;

/** @brief Whether a piece of such a burst goes that way: so many in all, evenly spread. */
[[nodiscard]] bool is_staged(std::size_t piece, link_rates const& rates) noexcept;

}  // namespace rmm_uvm

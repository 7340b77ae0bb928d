// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/link_rates.hpp>
#include <rmm_uvm/residency/block_record.hpp>

#include <optional>

namespace rmm_uvm {

/** @brief What is known when a block that lies on a neighbour is about to be used. */
struct beside_use {
  bool has_room{true};                 ///< it fits on the device without that live blocks leave
  std::optional<use_tick> again_in{};  ///< uses until its next one; `no_use`: never; none: unknown
  std::optional<use_tick> other_in{};  ///< the same of what would leave for it first
};

/**
 * @brief Whether kernels had better read a block where it lies, through a mapping.
 *
 * For what is streamed through once: to fetch it would cost its way here and, without room, the way
 * of something that is needed sooner. What is used again before that comes, whatever the rates: one
 * announced use may be many reads. So does what nothing is known of.
 * @param rates measured; where one is not known nothing is read in place
 */
[[nodiscard]] bool cheaper_in_place(beside_use const& use, link_rates const& rates) noexcept;

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/neighbor_load.hpp>

#include <optional>
#include <span>

namespace rmm_uvm {

/** @brief From where on a neighbour counts as busy, and from where on as idle again. */
struct busy_thresholds {
  double busy_above{1};  ///< fraction, 0 to 1; 1: never
  double idle_below{1};  ///< fraction, at most `busy_above`
};

/**
 * @brief The larger of what kernels and links are busy with; none where neither is told.
 *
 * Not memory: what reads it is a kernel, or a copy, and most copies there are the harvester's own.
 */
[[nodiscard]] std::optional<double> load_fraction(neighbor_load const& load) noexcept;

/**
 * @brief Whether a neighbour is to be left alone: pure, with hysteresis.
 *
 * Every sample must agree before the answer changes, so that neither a single kernel nor a pause
 * between two steps does. A sample that tells nothing agrees with nothing.
 * @param recent its latest loads, in any order, without what the caller's own copies put on its
 * links; none: nothing changes
 * @param was_busy the answer before
 */
[[nodiscard]] bool is_busy(std::span<neighbor_load const> recent,
                           busy_thresholds thresholds,
                           bool was_busy) noexcept;

}  // namespace rmm_uvm

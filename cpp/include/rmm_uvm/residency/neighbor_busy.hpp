// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/neighbor_load.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
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

/** @brief Bytes that this process had moved between its device and a neighbour. */
struct own_traffic {
  std::uint64_t to_bytes{0};    ///< the neighbour receives them
  std::uint64_t from_bytes{0};  ///< the neighbour sends them
};

/** @brief What was seen of a neighbour's load lately. */
struct neighbor_watch {
  std::array<neighbor_load, 3> loads{};  ///< the latest, in any order
  std::size_t count{0};                  ///< how many there were
  std::chrono::steady_clock::time_point looked{};
  own_traffic asked{};  ///< by us, since the latest look
  own_traffic late{};   ///< asked before it, and not seen by then
  bool busy{false};
};

/**
 * @brief What part of their rate a neighbour's links carried for others than us.
 *
 * What we asked for may be seen a look later, and no later: it is taken off what the links carried
 * since the look before. Where they are not told in bytes, a look in which we moved anything tells
 * nothing.
 * @param[in,out] watch what we asked for is taken from it
 */
[[nodiscard]] std::optional<double> fraction_of_others(neighbor_load const& load,
                                                       neighbor_watch& watch) noexcept;

}  // namespace rmm_uvm

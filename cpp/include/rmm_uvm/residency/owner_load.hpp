// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/neighbor_busy.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

namespace rmm_uvm {

/** @brief Between what bounds a device's own program uses its links: fractions of 1. */
struct owner_load {
  double at_least{0};
  double at_most{1};
};

/**
 * @brief How busy a program that lends its device's memory has the device's links.
 *
 * @param moving_fraction of the time in which calls of its own that move blocks were under way
 * @param link_fraction of their rate that the device's links carried, where that is told
 * @param others_hold others have memory there: some of what the links carry is theirs, not the
 *        program's
 */
[[nodiscard]] owner_load load_of_owner(double moving_fraction,
                                       std::optional<double> link_fraction,
                                       bool others_hold) noexcept;

/**
 * @brief Whether a program wants its device's links for itself: pure, with hysteresis.
 *
 * Every sample must agree before the answer changes. Busy is only what is so at least, idle what is
 * so at most.
 * @param recent the latest, in any order; none: nothing changes
 */
[[nodiscard]] bool wants_links(std::span<owner_load const> recent,
                               busy_thresholds thresholds,
                               bool wanted_them) noexcept;

/** @brief Adds up the time in which at least one call is under way. Not thread-safe. */
class moving_time {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /** @brief A call begins. */
  void begin(time_point now) noexcept
  {
    if (under_way_++ == 0) { since_ = now; }
  }
  /** @brief One ends. @pre as many have begun */
  void end(time_point now) noexcept
  {
    if (--under_way_ == 0) { together_ += now - since_; }
  }
  /** @brief The part of the time since `earlier` in which one was under way; begins anew. */
  [[nodiscard]] double take_fraction(time_point earlier, time_point now) noexcept;

 private:
  std::size_t under_way_{0};
  time_point since_{};
  std::chrono::steady_clock::duration together_{0};
};

/** @brief What a program that lends has seen of its own load. */
struct owner_watch {
  moving_time moving{};
  std::array<owner_load, 3> loads{};  ///< the latest, in any order
  std::size_t count{0};               ///< how many there were
  std::chrono::steady_clock::time_point looked{};
  bool stirred{false};  ///< something moved since a look at which nothing did
  bool told{true};      ///< the driver tells the device's load, as far as is known
  bool busy{false};     ///< what others were told
};

}  // namespace rmm_uvm

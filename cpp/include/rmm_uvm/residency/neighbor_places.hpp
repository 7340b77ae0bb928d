// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/neighbor_load.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace rmm_uvm {

/** @brief Another device whose idle memory live blocks may leave to. */
struct neighbor {
  int device_id{0};                                                  ///< CUDA ordinal; opened
  std::size_t limit_bytes{std::numeric_limits<std::size_t>::max()};  ///< most that may lie there
  friend bool operator==(neighbor const&, neighbor const&) = default;
};

/** @brief The most neighbours: a block's record has three bits for which of them it lies on. */
inline constexpr std::size_t most_neighbors = 8;

/** @brief How a neighbour is used now; bytes are whole blocks of 2 MiB. */
struct neighbor_state {
  neighbor which;
  std::size_t held_bytes{0};    ///< lie there, or are on their way
  std::size_t moving_bytes{0};  ///< of those, on their way there
  /**
   * Memory there behind blocks that came back: the kernel driver keeps it for them until somebody
   * needs it. To their owner it looks taken, and it counts under the limit.
   */
  std::size_t kept_bytes{0};
  /**
   * Free memory for which the owner was answered: what leaves a device stays its driver's until
   * somebody needs it, so that free memory does not rise at once.
   */
  std::size_t answered_bytes{std::numeric_limits<std::size_t>::max()};
  std::chrono::steady_clock::time_point full_until{};  ///< it had no room: not asked before that
  bool given_up{false};  ///< a call about it failed: it is not asked again
  bool busy{false};      ///< its owner wanted no traffic when it was looked at last
  bool full{false};      ///< of what was asked for last, it had not memory for all

  /** @brief Whether blocks go there that it has memory for. */
  [[nodiscard]] bool takes_kept() const noexcept { return !given_up && !busy; }
  /** @brief Whether any block goes there, as far as is known. */
  [[nodiscard]] bool takes_any() const noexcept
  {
    return takes_kept() && !full && room_bytes() >= va_block_bytes;
  }
  /** @brief How much more may lie there. */
  [[nodiscard]] std::size_t room_bytes() const noexcept
  {
    return which.limit_bytes - std::min(which.limit_bytes, held_bytes + kept_bytes);
  }
};

/** @brief What was seen of a neighbour's load lately. */
struct neighbor_watch {
  std::array<neighbor_load, 3> loads{};  ///< the latest, in any order
  std::size_t count{0};                  ///< how many there were
  std::chrono::steady_clock::time_point looked{};
  std::uint64_t moved_bytes{0};  ///< by us, until then: what the links carry is theirs and ours
  bool busy{false};
};

/**
 * @brief How much must leave a neighbour whose owner does not lend: what is missing of the reserve.
 *
 * What was missing before, and left since, is not asked for again.
 * @param free_bytes that its driver tells now
 */
[[nodiscard]] std::size_t missing_reserve(neighbor_state& state,
                                          std::size_t free_bytes,
                                          std::size_t reserve_bytes) noexcept;

/**
 * @brief Which neighbour takes the next blocks: that with the least on its way there.
 *
 * So several share the traffic. Among equals the one with the most room.
 * @param passed_over neighbours that are not asked, by bits
 * @return its number; none when no neighbour has room for a block
 */
[[nodiscard]] std::optional<std::size_t> choose_neighbor(std::span<neighbor_state const> states,
                                                         unsigned passed_over = 0) noexcept;

/**
 * @brief Puts ranges that come from several places in an order in which all places are at work.
 *
 * Each place's ranges stay in order, and are spread evenly over the whole list.
 * @param places ranges by the place that they come from
 */
[[nodiscard]] std::vector<memory_range> interleaved(
  std::span<std::vector<memory_range> const> places);

}  // namespace rmm_uvm

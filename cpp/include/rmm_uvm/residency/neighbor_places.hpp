// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
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
  std::size_t seen_bytes{0};    ///< free memory at the latest look
  std::size_t owed_bytes{0};    ///< of what the owner misses, ours to give back, and still here
  std::size_t unseen_bytes{0};  ///< given back of that, for which free memory has not risen
  std::chrono::steady_clock::time_point full_until{};  ///< it had no room: not asked before that
  bool given_up{false};  ///< a call about it failed: it is not asked again
  bool busy{false};      ///< its owner wanted no traffic when it was looked at last
  bool full{false};      ///< of what was asked for last, it had not memory for all

  bool refuses{false};  ///< nor for those for which it had kept memory: others claimed it

  /** @brief Whether blocks go there that it has memory for. */
  [[nodiscard]] bool takes_kept() const noexcept { return !given_up && !busy && !refuses; }
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

/**
 * @brief What is newly missing of a reserve, of a neighbour whose owner does not lend.
 *
 * It is told once, for all who hold memory there: the caller adds its share to `owed_bytes`. What
 * free memory rises by since, beyond what `gave_back` was told, others gave back: that much of it
 * is not owed any more.
 * @param free_bytes that its driver tells now
 * @return whole blocks; 0 when nothing is missing that was not before
 */
[[nodiscard]] std::size_t missing_reserve(neighbor_state& state,
                                          std::size_t free_bytes,
                                          std::size_t reserve_bytes) noexcept;

/** @brief So much has left a neighbour for its owner. */
void gave_back(neighbor_state& state, std::size_t bytes) noexcept;

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

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/block_record.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rmm_uvm {

/**
 * @brief How much any of a group of blocks should leave, at most; a plain value.
 *
 * Of what is on the device and not pinned. So whoever looks for what leaves first passes over most
 * groups. What makes a block leave earlier, and each use that is announced, has to be included: the
 * bounds are too high then, and never too low. At `due` something that was expected did not come,
 * and they have to be computed anew.
 */
struct leaving_bounds {
  std::uint64_t oldest_free{
    ~std::uint64_t{0}};                  ///< of what may be dropped, the first free's number
  use_tick oldest_dead{no_use};          ///< of the same, the first that was used last
  use_tick oldest_use{no_use};           ///< of all, the first that was used last
  use_tick oldest_work{no_use};          ///< the same, where a prefetch is no use
  use_tick oldest_touch{no_use};         ///< the first announced use that was a block's last
  use_tick newest_touch{never_used};     ///< and the last
  use_tick oldest_unexpected{no_use};    ///< of what no use is expected of, the same
  use_tick oldest_arrival{no_use};       ///< of all
  use_tick latest_expected{never_used};  ///< of what a use is expected of
  use_tick due{no_use};                  ///< the first use that is expected
  std::uint8_t chunks{0};                ///< see `block_record`, of all
  std::uint8_t kinds{0};                 ///< what is among them, see `has`

  static constexpr std::uint8_t there       = 1;   ///< anything on the device
  static constexpr std::uint8_t droppable   = 2;   ///< something may be dropped
  static constexpr std::uint8_t undroppable = 4;   ///< something is dead and may not be dropped
  static constexpr std::uint8_t unneeded    = 8;   ///< something is foreseen not to be used again
  static constexpr std::uint8_t only_read   = 16;  ///< something may leave without a copy
  static constexpr std::uint8_t copied      = 32;  ///< the host has a copy of something
  static constexpr std::uint8_t to_copy     = 64;  ///< something is only read, and never had one

  /** @brief Whether something of a kind is among them. */
  [[nodiscard]] bool has(std::uint8_t kind) const noexcept { return (kinds & kind) != 0; }
  /** @brief Includes a block, as of a moment; nothing where it is not there, or is pinned. */
  void include(block_record const& block, use_tick now) noexcept
  {
    if (block.place != block_place::device || block.pins > 0) { return; }
    auto const handed_out_or_used = std::max(block.allocated, block.touched);
    auto const last               = std::max(handed_out_or_used, block.prefetched);
    chunks                        = static_cast<std::uint8_t>(chunks | block.chunks);
    kinds                         = static_cast<std::uint8_t>(kinds | kinds_of(block));
    oldest_use                    = std::min(oldest_use, last);
    oldest_work                   = std::min(oldest_work, handed_out_or_used);
    oldest_touch                  = std::min(oldest_touch, block.touched);
    newest_touch                  = std::max(newest_touch, block.touched);
    oldest_arrival                = std::min(oldest_arrival, block.arrived);
    if (block.dead() && !block.unfenced) {
      oldest_free = std::min(oldest_free, block.freed);
      oldest_dead = std::min(oldest_dead, handed_out_or_used);
    }
    auto const next = block.expected_use();
    if (next < unknown_use && next >= now) {
      latest_expected = std::max(latest_expected, next);
      due             = std::min(due, next);
    } else {
      oldest_unexpected = std::min(oldest_unexpected, last);
    }
    // Of these the next use of another one may be expected then.
    if (block.shared && block.next_use < unknown_use) { due = std::min(due, block.next_use); }
  }
  /** @brief Includes all of another group. */
  void include(leaving_bounds const& other) noexcept
  {
    oldest_free       = std::min(oldest_free, other.oldest_free);
    oldest_dead       = std::min(oldest_dead, other.oldest_dead);
    oldest_use        = std::min(oldest_use, other.oldest_use);
    oldest_work       = std::min(oldest_work, other.oldest_work);
    oldest_touch      = std::min(oldest_touch, other.oldest_touch);
    newest_touch      = std::max(newest_touch, other.newest_touch);
    oldest_unexpected = std::min(oldest_unexpected, other.oldest_unexpected);
    oldest_arrival    = std::min(oldest_arrival, other.oldest_arrival);
    latest_expected   = std::max(latest_expected, other.latest_expected);
    due               = std::min(due, other.due);
    chunks            = static_cast<std::uint8_t>(chunks | other.chunks);
    kinds             = static_cast<std::uint8_t>(kinds | other.kinds);
  }

 private:
  [[nodiscard]] static std::uint8_t kinds_of(block_record const& block) noexcept
  {
    auto found = there;
    if (block.dead()) { found |= block.unfenced ? undroppable : droppable; }
    if (block.expected_use() == no_use) { found |= unneeded; }
    if (block.copied) { found |= copied; }
    if (block.only_read) { found |= only_read; }
    if (block.only_read && !block.copied) { found |= to_copy; }
    return found;
  }
};

/**
 * @brief The bounds of a slab's blocks, in groups of 64, of these in groups of 64, and of all.
 *
 * Not thread-safe: the ledger's lock is held.
 */
class bounds_tree {
 public:
  static constexpr std::size_t fan_out = 64;  ///< of each level but the root
  static constexpr std::size_t levels  = 3;   ///< groups, groups of groups, the root

  /** @param blocks of the slab; nothing is on the device yet */
  explicit bounds_tree(std::size_t blocks)
  {
    auto count = blocks;
    for (std::size_t level = 0; level + 1 < levels; ++level) {
      count = (count + fan_out - 1) / fan_out;
      nodes_[level].resize(count);
    }
    nodes_[levels - 1].resize(1);
  }

  /** @brief Bounds of a node; level 0 has the groups of blocks. */
  [[nodiscard]] leaving_bounds const& at(std::size_t level, std::size_t index) const noexcept
  {
    return nodes_[level][index];
  }
  /** @brief Bounds of all. */
  [[nodiscard]] leaving_bounds const& all() const noexcept { return nodes_[levels - 1].front(); }
  /** @brief Children of a node: nodes of the level below, or blocks; [first, last). */
  [[nodiscard]] std::pair<std::size_t, std::size_t> children(std::size_t level,
                                                             std::size_t index,
                                                             std::size_t blocks) const noexcept
  {
    auto const count = level == 0 ? blocks : nodes_[level - 1].size();
    if (level == levels - 1) { return {0, count}; }
    return {index * fan_out, std::min(count, (index + 1) * fan_out)};
  }
  /** @brief Includes bounds of blocks of one group, on all levels. */
  void include(std::size_t group, leaving_bounds const& added) noexcept
  {
    nodes_[0][group].include(added);
    nodes_[1][group / fan_out].include(added);
    nodes_[2][0].include(added);
  }
  /** @brief Replaces a group's bounds; what it is in follows when it is folded. */
  void replace(std::size_t group, leaving_bounds const& bounds) noexcept
  {
    nodes_[0][group] = bounds;
  }
  /** @brief Has a node above the groups follow the nodes below it. */
  void fold(std::size_t level, std::size_t index) noexcept
  {
    leaving_bounds all;
    auto const [first, last] = children(level, index, 0);
    for (auto child = first; child < last; ++child) {
      all.include(nodes_[level - 1][child]);
    }
    nodes_[level][index] = all;
  }
  /** @brief Has all bounds be computed anew when they are needed. */
  void forget() noexcept
  {
    for (auto& level : nodes_) {
      for (auto& each : level) {
        each     = {};
        each.due = never_used;
      }
    }
  }

 private:
  std::array<std::vector<leaving_bounds>, levels> nodes_;
};

}  // namespace rmm_uvm

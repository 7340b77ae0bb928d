// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/block_record.hpp>
#include <rmm_uvm/residency/budget/last_announced.hpp>
#include <rmm_uvm/residency/eviction_policy.hpp>
#include <rmm_uvm/residency/leaving_bounds.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace rmm_uvm {

/**
 * @brief In which order live blocks leave, and dead ones that may not be dropped.
 *
 * Where dead blocks are ranked, they are in it, too. The highest key leaves first. A plain value,
 * of one moment: under the ledger's lock.
 */
struct leaving_order {
  eviction_policy policy{eviction_policy::lru};
  use_tick now{never_used};          ///< the moment
  use_tick used_last{~use_tick{0}};  ///< kernels of later uses may be under way: these stay
  use_tick not_before{never_used};   ///< only what is likely unused until then; never used: all
  bool foresees{false};              ///< uses are foreseen
  bool drops{false};                 ///< dead blocks are dropped
  bool ranks_dead{false};            ///< they take their turn among the others
  bool keeps_copies{false};          ///< something may leave without a copy
  bool spares_announced{false};      ///< what a stream was just announced to use stays
  std::uint64_t weight_beside{1};    ///< of what a neighbour has memory for that takes some now
  unsigned taking{0};                ///< these neighbours, by bits
  use_tick announced_from{no_use};   ///< what was touched before is not among what was announced
  last_announced const& announced;

  /** @brief Whether a block may be dropped, so that only ranked ones are among the others. */
  [[nodiscard]] bool is_droppable(block_record const& block) const noexcept
  {
    return drops && block.dead() && !block.unfenced;
  }

  /**
   * @brief The key of a block that is on the device and movable; nothing: it stays.
   * @param uncopied it leaves without a copy
   */
  [[nodiscard]] std::optional<std::uint64_t> of(block_record const& block,
                                                bool uncopied) const noexcept
  {
    if (!may_leave(block)) { return std::nullopt; }
    bool const droppable = is_droppable(block);
    // Dead, but not to be dropped: nobody needs it, so it leaves before what somebody does. Where
    // dead blocks are ranked it takes its turn, too: soon handed out again, it would come back.
    bool const first = needless() && block.dead() && !droppable;
    auto key         = first ? before_all_others : leaving_key(policy, block, now, foresees);
    if (block.touched >= announced_from && announced.names(block)) [[unlikely]] {
      if (spares_announced) { return std::nullopt; }
      if (!first) { key = 0; }
    }
    return weighed(key, block.chunks, uncopied, block.copied, droppable);
  }

  /** @brief A key of a group that none of its blocks is above; nothing: all of them stay. */
  [[nodiscard]] std::optional<std::uint64_t> of(leaving_bounds const& bounds) const noexcept
  {
    if (!may_leave(bounds)) { return std::nullopt; }
    bool const first = needless() && bounds.has(leaving_bounds::undroppable);
    auto key         = first ? before_all_others : most_leaving_key(policy, bounds, now, foresees);
    if (bounds.oldest_touch >= announced_from &&
        announced.cover(bounds.oldest_touch, bounds.newest_touch)) {
      if (spares_announced) { return std::nullopt; }
      if (!first) { key = 0; }
    }
    auto const of = [&](bool droppable) {
      return weighed(key,
                     bounds.chunks,
                     bounds.has(leaving_bounds::only_read),
                     bounds.has(leaving_bounds::copied),
                     droppable);
    };
    return bounds.has(leaving_bounds::droppable) ? std::max(of(false), of(true)) : of(false);
  }

 private:
  // How much more often may leave what is cheap to have again, against what is copied both ways. A
  // block of 2 MiB takes 9 us to drop and to make usable again, 42 us to fetch, and up to 200 us
  // more to be copied out (measured on an H100). How long ago a dead block was freed is the least
  // that it stays so: with less than 48 the simulated FIR of the discard paper copies more than the
  // paper's.
  static constexpr std::uint64_t weight_of_uncopied = 6;   // it is copied at most once more
  static constexpr std::uint64_t weight_of_copied   = 12;  // the host has its copy already
  static constexpr std::uint64_t weight_of_dead     = 48;  // it is dropped
  static constexpr auto before_all_others           = ~std::uint64_t{0};

  [[nodiscard]] bool needless() const noexcept { return drops && !ranks_dead; }
  [[nodiscard]] bool may_leave(block_record const& block) const noexcept
  {
    if (block.discarded && !block.dead()) { return false; }  // handed out anew, about to be brought
    if (std::max(block.allocated, block.touched) > used_last) { return false; }
    // Early nothing leaves that is dead, and stays a copy if it leaves: it is handed out again.
    return not_before == never_used || (!block.dead() && is_likely_unused(block, now, not_before));
  }
  /** @brief False only where none of a group may. */
  [[nodiscard]] bool may_leave(leaving_bounds const& bounds) const noexcept
  {
    if (bounds.oldest_work > used_last) { return false; }
    return not_before == never_used || any_likely_unused(bounds, now, not_before);
  }
  [[nodiscard]] static constexpr std::uint64_t times(std::uint64_t key,
                                                     std::uint64_t weight) noexcept
  {
    return key > before_all_others / weight ? before_all_others : key * weight;
  }
  [[nodiscard]] std::uint64_t weighed(
    std::uint64_t key, unsigned chunks, bool uncopied, bool copied, bool droppable) const noexcept
  {
    if (droppable && ranks_dead) { return times(key, weight_of_dead); }
    // A way there and back that costs a sixth is worth to be taken more often.
    auto const of_place = (chunks & taking) != 0 ? times(key, weight_beside) : key;
    if (!uncopied || !keeps_copies) { return of_place; }
    return times(of_place, copied ? weight_of_copied : weight_of_uncopied);
  }
};

}  // namespace rmm_uvm

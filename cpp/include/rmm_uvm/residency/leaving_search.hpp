// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/residency/ledger.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Finds blocks by bounds of the groups that they are in, and looks at few others.
 *
 * With the ledger's lock, and as long as its view.
 */
class leaving_search {
 public:
  /** @param now as of which bounds are */
  leaving_search(ledger_view& view, use_tick now) noexcept : ledger_{view.ledger_}, now_{now}
  {
    view.keep_bounds();
  }

  /** @brief Whether something of a kind may be there, see `leaving_bounds::has`. */
  [[nodiscard]] bool any(std::uint8_t kind) const noexcept
  {
    auto const has = [kind](auto const& group) {
      return group.bounds.has(kind) || group.bounds.due == never_used;  // or nobody knows
    };
    return std::any_of(ledger_.groups_.begin(), ledger_.groups_.end(), has);
  }

  /**
   * @brief Computes bounds anew of which something expected did not come.
   * @param look is called before, as `look(block_record&, memory_range)`, for each block there that
   *        is on the device
   */
  template <typename Look>
  void renew(Look const& look)
  {
    for (std::size_t each = 0; each < ledger_.groups_.size(); ++each) {
      if (ledger_.groups_[each].bounds.due > now_) { continue; }
      for_slabs_of(each,
                   [&](slab_record& slab) { renew_in(slab, bounds_tree::levels - 1, 0, look); });
      fold(each);
    }
  }

  /**
   * @brief Takes the blocks that are on the device, the highest key first, then the lowest address.
   * @param bound of a group, `std::optional<std::uint64_t>(leaving_bounds const&)`: no key of it is
   *        higher; nothing where it has no key
   * @param key of a block, `std::optional<std::uint64_t>(block_record&, memory_range)`; nothing
   *        where it is not to be taken
   * @param take `bool(viewed_block)`: whether to go on
   */
  template <typename Bound, typename Key, typename Take>
  void highest_first(Bound const& bound, Key const& key, Take const& take)
  {
    std::vector<entry> open;
    open.reserve(3 * bounds_tree::fan_out);  // a group of blocks, and what is beside its way
    auto const push = [&open](entry const& added) {
      open.push_back(added);
      std::push_heap(open.begin(), open.end());
    };
    auto const push_node = [&](slab_record* slab, std::size_t level, std::size_t index) {
      auto const& bounds = slab->bounds.at(level, index);
      if (!bounds.has(leaving_bounds::there)) { return; }
      if (auto const most = bound(bounds)) {
        push({*most, address_of(*slab, level, index), slab, index, level});
      }
    };
    for (std::size_t each = 0; each < ledger_.groups_.size(); ++each) {
      auto const& group = ledger_.groups_[each];
      if (!group.bounds.has(leaving_bounds::there)) { continue; }
      if (auto const most = bound(group.bounds)) {
        push({*most, group.address, nullptr, each, slabs});
      }
    }
    while (!open.empty()) {
      std::pop_heap(open.begin(), open.end());
      auto const next = open.back();
      open.pop_back();
      auto* const slab = next.slab;
      if (next.level == slabs) {
        fold(next.index);
        for_slabs_of(next.index,
                     [&](slab_record& one) { push_node(&one, bounds_tree::levels - 1, 0); });
        continue;
      }
      if (next.level == a_block) {
        if (!take(viewed_block{&slab->blocks[next.index], range_of(*slab, next.index)})) { return; }
        continue;
      }
      auto const [first, last] = slab->bounds.children(next.level, next.index, slab->blocks.size());
      if (next.level > 0) {
        slab->bounds.fold(next.level, next.index);
        for (auto child = first; child < last; ++child) {
          push_node(slab, next.level - 1, child);
        }
        continue;
      }
      leaving_bounds exact;  // blocks have been used since
      for (auto index = first; index < last; ++index) {
        auto& block = slab->blocks[index];
        if (block.place != block_place::device) { continue; }
        exact.include(block, now_);
        auto const range = range_of(*slab, index);
        if (auto const found = key(block, range)) {
          push({*found, range.address, slab, index, a_block});
        }
      }
      slab->bounds.replace(next.index, exact);
    }
  }

 private:
  using slab_record = residency_ledger::slab_record;

  // Beside the levels of a slab's nodes.
  static constexpr std::size_t slabs   = bounds_tree::levels;
  static constexpr std::size_t a_block = slabs + 1;

  struct entry {
    std::uint64_t key;
    std::uintptr_t address;
    slab_record* slab;
    std::size_t index;
    std::size_t level;

    /** @brief Whether it comes later: what has the lower key, then the higher address. */
    friend bool operator<(entry const& a, entry const& b) noexcept
    {
      return a.key != b.key ? a.key < b.key : a.address > b.address;
    }
  };

  /** @brief Addresses of a block, cut off at the slab's ends. */
  [[nodiscard]] static memory_range range_of(slab_record const& slab, std::size_t index) noexcept
  {
    auto const window = va_block_floor(slab.range.address) + index * va_block_bytes;
    auto const first  = std::max(window, slab.range.address);
    return {first, std::min(window + va_block_bytes, slab.range.end()) - first};
  }
  /** @brief The first address of a node. */
  [[nodiscard]] static std::uintptr_t address_of(slab_record const& slab,
                                                 std::size_t level,
                                                 std::size_t index) noexcept
  {
    auto block = index;
    for (std::size_t below = 0; below <= level; ++below) {
      block *= bounds_tree::fan_out;
    }
    return range_of(slab, block).address;
  }
  template <typename Visit>
  void for_slabs_of(std::size_t group, Visit const& visit)
  {
    auto const first = group * residency_ledger::slabs_a_group;
    auto const last  = std::min(first + residency_ledger::slabs_a_group, ledger_.numbered_.size());
    for (auto number = first; number < last; ++number) {
      if (auto* const slab = ledger_.numbered_[number]) { visit(*slab); }
    }
  }
  /** @brief Has the bounds of a group of slabs follow theirs. */
  void fold(std::size_t group) noexcept
  {
    leaving_bounds all;
    for_slabs_of(group, [&all](slab_record const& slab) { all.include(slab.bounds.all()); });
    ledger_.groups_[group].bounds = all;
  }
  template <typename Look>
  void renew_in(slab_record& slab, std::size_t level, std::size_t index, Look const& look)
  {
    if (slab.bounds.at(level, index).due > now_) { return; }
    auto const [first, last] = slab.bounds.children(level, index, slab.blocks.size());
    if (level > 0) {
      for (auto child = first; child < last; ++child) {
        renew_in(slab, level - 1, child, look);
      }
      slab.bounds.fold(level, index);
      return;
    }
    leaving_bounds exact;
    for (auto block = first; block < last; ++block) {
      auto& record = slab.blocks[block];
      if (record.place != block_place::device) { continue; }
      look(record, range_of(slab, block));
      exact.include(record, now_);
    }
    slab.bounds.replace(index, exact);
  }

  residency_ledger& ledger_;
  use_tick now_;
};

}  // namespace rmm_uvm

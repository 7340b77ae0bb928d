// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/shared_blocks.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

constexpr use_tick soon = 16;  // of 4, 16 and 64 the one that moved least on a recorded ETL

constexpr std::uintptr_t unnamed = 0;  // whoever was in a block before it was kept, as one owner

}  // namespace

/** @brief Where an owner is kept that is expected to be used at `next`; null: nowhere. */
shared_blocks::moments* shared_blocks::list_of(shared_block& block, use_tick next) noexcept
{
  if (next == no_use) { return nullptr; }
  return next == unknown_use ? &block.unforeseen : &block.foreseen;
}

shared_blocks::moment shared_blocks::moment_of(std::uintptr_t owner, uses const& of) noexcept
{
  return {of.next == unknown_use ? of.last : of.next, owner};
}

void shared_blocks::begin(std::uintptr_t block, use_tick next, use_tick last)
{
  end(block);  // of a slab that was there before
  static_cast<void>(use(block, unnamed, next, last));
}

use_tick shared_blocks::use(std::uintptr_t block,
                            std::uintptr_t owner,
                            use_tick next,
                            use_tick now)
{
  auto& kept      = blocks_[block];
  auto const that = kept.owners.find(owner);
  uses const then{next, now};
  auto* const to = list_of(kept, next);
  moments::node_type node;
  if (that != kept.owners.end()) {
    if (auto* const from = list_of(kept, that->second.next)) {
      node = from->extract(moment_of(owner, that->second));
    }
    that->second = {no_use, now};  // in no list, should there be no memory
  }
  if (to != nullptr && !node.empty()) {
    node.value() = moment_of(owner, then);
    to->insert(std::move(node));
  } else if (to != nullptr) {
    to->insert(moment_of(owner, then));
  }
  if (that != kept.owners.end()) {
    that->second = then;
  } else {
    kept.owners.emplace(owner, then);
  }
  return soonest(kept, now);
}

use_tick shared_blocks::forget(std::uintptr_t block, std::uintptr_t owner, use_tick now) noexcept
{
  auto const found = blocks_.find(block);
  if (found == blocks_.end()) { return unknown_use; }
  auto& kept = found->second;
  auto that  = kept.owners.find(owner);
  if (that == kept.owners.end()) { that = kept.owners.find(unnamed); }  // it was among those
  if (that != kept.owners.end()) {
    if (auto* const from = list_of(kept, that->second.next)) {
      from->erase(moment_of(that->first, that->second));
    }
    kept.owners.erase(that);
  }
  return soonest(kept, now);
}

/**
 * @brief When one of the owners is used next.
 *
 * One that was not foreseen, or not used when it was, is taken to be used soon if it just was, since
 * it was used in company, and else to lie unused for as long again as it has.
 */
use_tick shared_blocks::soonest(shared_block& block, use_tick now) noexcept
{
  auto& foreseen = block.foreseen;
  while (!foreseen.empty() && foreseen.begin()->first <= now) {
    auto node       = foreseen.extract(foreseen.begin());
    auto const that = block.owners.find(node.value().second);
    if (that == block.owners.end()) { continue; }  // there was no memory for it
    that->second.next = unknown_use;
    node.value()      = moment_of(that->first, that->second);
    block.unforeseen.insert(std::move(node));
  }
  if (foreseen.empty()) {
    bool const any = block.owners.empty() || !block.unforeseen.empty();
    return any ? unknown_use : no_use;
  }
  auto const next = foreseen.begin()->first;
  if (block.unforeseen.empty()) { return next; }
  auto const unused = now - block.unforeseen.rbegin()->first;
  return std::min(next, now + std::max(soon, unused));
}

void shared_blocks::turn_back(tick_shift const& shift) noexcept
{
  auto const turn = [&shift](moments& list) {
    moments turned;
    while (!list.empty()) {
      auto node = list.extract(list.begin());
      shift(node.value().first);
      turned.insert(std::move(node));
    }
    list.swap(turned);
  };
  for (auto& [address, block] : blocks_) {
    turn(block.foreseen);
    turn(block.unforeseen);
    for (auto& [owner, of] : block.owners) {
      shift(of.next);
      shift(of.last);
    }
  }
}

}  // namespace rmm_uvm

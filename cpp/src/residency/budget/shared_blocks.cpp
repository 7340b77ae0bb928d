// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/shared_blocks.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr use_tick soon = 16;  // of 4, 16 and 64 the one that moved least on a recorded ETL

constexpr std::uintptr_t unnamed = 0;  // whoever was in a block before it was kept, as one owner

}  // namespace

/** @brief Where an owner is kept of which that is expected; null: nowhere. */
shared_blocks::moments* shared_blocks::list_of(shared_block& block, expectation next) noexcept
{
  if (next.next == unknown_use) { return &block.unforeseen; }
  if (next.no_more) { return &block.freed; }
  return next.next == no_use ? nullptr : &block.used;
}

shared_blocks::moment shared_blocks::moment_of(std::uintptr_t owner, owner_use const& of) noexcept
{
  return {of.next.next == unknown_use ? of.last : of.next.next, owner};
}

void shared_blocks::begin(std::uintptr_t block, use_tick next, use_tick last)
{
  end(block);  // of a slab that was there before
  static_cast<void>(use(block, unnamed, {next, false}, {last, false}));
}

use_tick shared_blocks::use(std::uintptr_t block,
                            std::uintptr_t owner,
                            expectation next,
                            moment_at at)
{
  auto& kept                = blocks_[block];
  auto const [that, is_new] = kept.owners.try_emplace(owner, owner_use{{no_use, false}, at.now});
  auto& use                 = that->second;
  moments::node_type node;
  if (auto* const from = list_of(kept, use.next)) { node = from->extract(moment_of(owner, use)); }
  owner_use const then{next, at.now};
  use = {{no_use, false}, at.now};  // in no list, should there be no memory
  if (auto* const to = list_of(kept, next)) {
    if (node.empty()) {
      to->insert(moment_of(owner, then));
    } else {
      node.value() = moment_of(owner, then);
      to->insert(std::move(node));
    }
  }
  use = then;
  if (is_new && owner != unnamed) { kept.handed = at.now; }
  return soonest(kept, at);
}

use_tick shared_blocks::forget(std::uintptr_t block, std::uintptr_t owner, moment_at at) noexcept
{
  auto const found = blocks_.find(block);
  if (found == blocks_.end()) { return unknown_use; }
  auto& kept  = found->second;
  kept.handed = at.now;
  auto that   = kept.owners.find(owner);
  if (that == kept.owners.end()) { that = kept.owners.find(unnamed); }  // it was among those
  if (that != kept.owners.end()) {
    if (auto* const from = list_of(kept, that->second.next)) {
      from->erase(moment_of(that->first, that->second));
    }
    kept.owners.erase(that);
  }
  return soonest(kept, at);
}

use_tick shared_blocks::look_again(std::uintptr_t block, moment_at at) noexcept
{
  auto const found = blocks_.find(block);
  if (found == blocks_.end()) { return unknown_use; }
  auto& kept      = found->second;
  auto const next = foreseen(kept, at.now);
  // It was not handed out as soon as `soonest` takes it to be: its last use judges.
  auto const idle = std::max(soon, at.now - kept.handed);
  if (at.room && next < unknown_use && next > at.now + idle) { return unknown_use; }
  return soonest(kept, at);
}

/** @brief What did not come when it was expected is not foreseen any more. */
void shared_blocks::pass(shared_block& block, moments& overdue, use_tick now) noexcept
{
  while (!overdue.empty() && overdue.begin()->first <= now) {
    auto node    = overdue.extract(overdue.begin());
    auto& that   = block.owners.find(node.value().second)->second;
    that.next    = {};
    node.value() = moment_of(node.value().second, that);
    block.unforeseen.insert(std::move(node));
  }
}

/**
 * @brief When one of the owners is used next, of those of which it is foreseen.
 *
 * What is freed is likely handed out again at once: that is a use of the block, where others live
 * on in it.
 */
use_tick shared_blocks::foreseen(shared_block& block, use_tick now) noexcept
{
  pass(block, block.used, now);
  pass(block, block.freed, now);
  if (block.used.empty()) {
    bool const none = block.unforeseen.empty() && block.freed.empty() && !block.owners.empty();
    return none ? no_use : unknown_use;
  }
  auto const next = block.used.begin()->first;
  return block.freed.empty() ? next : std::min(next, block.freed.begin()->first);
}

/**
 * @brief When one of the owners is used next, or the block is handed out.
 *
 * An owner of which nothing is foreseen is taken to be used soon if it just was: it was used in
 * company. A free part is taken to be handed out soon if that just happened here, and else to lie
 * idle for as long again as it has: without, a recorded ETL moved 4 % more.
 */
use_tick shared_blocks::soonest(shared_block& block, moment_at at) noexcept
{
  auto next = foreseen(block, at.now);
  if (next >= unknown_use) { return next; }
  if (at.room) { next = std::min(next, at.now + std::max(soon, at.now - block.handed)); }
  if (block.unforeseen.empty()) { return next; }
  auto const last = block.unforeseen.rbegin()->first;
  return at.now - last < soon ? std::min(next, last + soon) : next;
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
    turn(block.used);
    turn(block.freed);
    turn(block.unforeseen);
    shift(block.handed);
    for (auto& [owner, of] : block.owners) {
      shift(of.next.next);
      shift(of.last);
    }
  }
}

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/ledger.hpp>

#include <algorithm>
#include <iterator>

namespace rmm_uvm {
namespace {

/** @brief Index of the block that holds `address`, counted from the slab's first window. */
[[nodiscard]] std::size_t block_index(memory_range slab, std::uintptr_t address) noexcept
{
  return (va_block_floor(address) - va_block_floor(slab.address)) / va_block_bytes;
}

[[nodiscard]] std::size_t count_blocks(memory_range slab) noexcept
{
  return (va_block_ceil(slab.end()) - va_block_floor(slab.address)) / va_block_bytes;
}

/** @brief Addresses of blocks [first, last), cut off at the slab's ends. */
[[nodiscard]] memory_range block_addresses(memory_range slab,
                                           std::size_t first,
                                           std::size_t last) noexcept
{
  auto const base  = va_block_floor(slab.address);
  auto const begin = std::max(base + first * va_block_bytes, slab.address);
  auto const end   = std::min(base + last * va_block_bytes, slab.end());
  return {begin, end - begin};
}

/** @brief The slab of a map that holds `address`; null: none does. */
template <typename Slabs>
[[nodiscard]] auto* slab_with(Slabs& slabs, std::uintptr_t address) noexcept
{
  auto const after = slabs.upper_bound(address);
  auto* const slab = after == slabs.begin() ? nullptr : &std::prev(after)->second;
  return slab != nullptr && address < slab->range.end() ? slab : nullptr;
}

}  // namespace

void residency_ledger::add_slab(memory_range slab)
{
  if (slab.bytes == 0) { return; }
  std::lock_guard const lock{mutex_};
  auto const blocks = count_blocks(slab);
  if (free_numbers_.empty()) {
    numbered_.push_back(nullptr);
    auto const count = numbered_.size();  // room for all of them, so that giving back takes none
    if (free_numbers_.capacity() < count) { free_numbers_.reserve(2 * count); }
    free_numbers_.push_back(count - 1);
  }
  auto const number = free_numbers_.back();
  groups_.resize((numbered_.size() + slabs_a_group - 1) / slabs_a_group);
  slab_record made{slab, std::vector<block_record>(blocks), bounds_tree{blocks}, number};
  auto& kept        = slabs_.emplace(slab.address, std::move(made)).first->second;
  numbered_[number] = &kept;
  free_numbers_.pop_back();
  auto& group   = group_of(kept);
  group.address = std::min(group.address, slab.address);
  block_count_ += blocks;
  slab_bytes_ += slab.bytes;
  settled_epoch_.store(0, std::memory_order_release);
}

void residency_ledger::remove_slab(std::uintptr_t address) noexcept
{
  std::lock_guard const lock{mutex_};
  remove(address);
}

/** @brief The same with the lock. */
void residency_ledger::remove(std::uintptr_t address) noexcept
{
  auto const it = slabs_.find(address);
  if (it == slabs_.end()) { return; }
  auto const& blocks = it->second.blocks;
  block_count_ -= blocks.size();
  slab_bytes_ -= it->second.range.bytes;
  if (counted_epoch_ != 0) {
    marked_count_ -=
      static_cast<std::size_t>(std::count_if(blocks.begin(), blocks.end(), [this](auto const& one) {
        return one.on_device_as_of == counted_epoch_;
      }));
    settle(counted_epoch_);
  }
  numbered_[it->second.number] = nullptr;
  free_numbers_.push_back(it->second.number);  // there is room for all numbers
  slabs_.erase(it);
}

residency_ledger::slab_record* residency_ledger::find(std::uintptr_t address) noexcept
{
  return slab_with(slabs_, address);
}

residency_ledger::slab_record const* residency_ledger::find(std::uintptr_t address) const noexcept
{
  return slab_with(slabs_, address);
}

std::optional<memory_range> residency_ledger::slab_of(std::uintptr_t address) const
{
  std::lock_guard const lock{mutex_};
  auto const* const slab = find(address);
  if (slab == nullptr) { return std::nullopt; }
  return slab->range;
}

void residency_ledger::settle(epoch_number epoch)
{
  settled_epoch_.store(marked_count_ == block_count_ ? epoch : 0, std::memory_order_release);
}

void residency_ledger::mark_on_device(memory_range range, epoch_number epoch)
{
  std::lock_guard const lock{mutex_};
  auto* const found = find(range.address);
  if (found == nullptr) { return; }
  auto& record    = *found;
  auto const slab = record.range;
  auto const end  = std::min(range.end(), slab.end());
  // Marks only grow: a thread that was held up must not put an older epoch over a newer one.
  if (epoch > counted_epoch_) {
    counted_epoch_ = epoch;
    marked_count_  = 0;
  }
  auto const first =
    range.address == slab.address ? 0 : block_index(slab, va_block_ceil(range.address));
  auto const last = end == slab.end() ? record.blocks.size() : block_index(slab, end);
  for (auto block = first; block < last; ++block) {
    auto& mark = record.blocks[block].on_device_as_of;
    if (mark >= epoch) { continue; }
    mark = epoch;
    if (epoch == counted_epoch_) { ++marked_count_; }
  }
  settle(counted_epoch_);
}

void residency_ledger::doubt(memory_range range) noexcept
{
  if (range.bytes == 0) { return; }
  std::lock_guard const lock{mutex_};
  auto* const found = find(range.address);
  if (found == nullptr) { return; }
  auto& record    = *found;
  auto const slab = record.range;
  auto const last = block_index(slab, std::min(range.end(), slab.end()) - 1) + 1;
  for (auto block = block_index(slab, range.address); block < last; ++block) {
    auto& mark = record.blocks[block].on_device_as_of;
    if (mark != 0 && mark == counted_epoch_) { --marked_count_; }
    mark = 0;
  }
  settle(counted_epoch_);
}

/** @brief Begins anew to count marks, with the lock. */
void residency_ledger::doubt_all() noexcept
{
  for (auto& [address, slab] : slabs_) {
    for (auto& block : slab.blocks) {
      block.on_device_as_of = 0;
    }
  }
  counted_epoch_ = 0;
  marked_count_  = 0;
  settle(0);
}

/** @brief Has the bounds of groups follow what changed in the blocks of a range. */
void ledger_view::include(memory_range range, use_tick now) noexcept
{
  auto* const found = ledger_.find(range.address);
  if (found == nullptr || range.bytes == 0) { return; }
  auto& slab      = *found;
  auto block      = block_index(slab.range, range.address);
  auto const last = block_index(slab.range, std::min(range.end(), slab.range.end()) - 1);
  while (block <= last) {
    auto const group = block / bounds_tree::fan_out;
    leaving_bounds added;
    for (; block <= last && block / bounds_tree::fan_out == group; ++block) {
      added.include(slab.blocks[block], now);
    }
    if (!added.has(leaving_bounds::there)) { continue; }
    slab.bounds.include(group, added);
    ledger_.group_of(slab).bounds.include(added);
  }
}

void ledger_view::forget_bounds() noexcept
{
  for (auto& [address, slab] : ledger_.slabs_) {
    slab.bounds.forget();
  }
  for (auto& group : ledger_.groups_) {
    group.bounds     = {};
    group.bounds.due = never_used;
  }
}

std::vector<memory_range> residency_ledger::doubtful_runs(memory_range range,
                                                          epoch_number epoch) const
{
  std::vector<memory_range> runs;
  if (range.bytes == 0) { return runs; }
  std::lock_guard const lock{mutex_};
  auto const* const found = find(range.address);
  if (found == nullptr) { return runs; }
  auto const& record = *found;
  auto const slab    = record.range;
  auto const last    = block_index(slab, std::min(range.end(), slab.end()) - 1) + 1;
  auto block         = block_index(slab, range.address);
  while (block < last) {
    if (record.blocks[block].on_device_as_of >= epoch) {
      ++block;
      continue;
    }
    auto const first = block;
    while (block < last && record.blocks[block].on_device_as_of < epoch) {
      ++block;
    }
    runs.push_back(block_addresses(slab, first, block));
  }
  return runs;
}

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/block_table.hpp>

#include <algorithm>
#include <iterator>
#include <new>

namespace rmm_uvm::sim {

std::uint32_t block_table::take(std::uint64_t pages, std::uintptr_t address, unsigned program)
{
  auto const count64 = (pages + pages_per_block - 1) / pages_per_block;
  if (count64 + blocks_.size() >= 0xFFFF'FFFF) { throw std::bad_alloc{}; }
  auto const count = static_cast<std::uint32_t>(count64);
  auto const fits  = std::find_if(
    free_.begin(), free_.end(), [&](auto const& extent) { return extent.second >= count; });
  std::uint32_t first = 0;
  if (fits != free_.end()) {
    first           = fits->first;
    auto const rest = fits->second - count;
    // A node is moved, not made: nothing here can fail.
    auto node = free_.extract(fits);
    if (rest > 0) {
      node.key()    = first + count;
      node.mapped() = rest;
      free_.insert(std::move(node));
    }
  } else {
    first = static_cast<std::uint32_t>(blocks_.size());
    on_gpus_.resize((blocks_.size() + count) * gpus_, page_set_store::empty);
    blocks_.resize(blocks_.size() + count);
  }
  for (std::uint32_t index = 0; index < count; ++index) {
    auto& fresh   = blocks_[first + index];
    fresh         = {};
    fresh.number  = static_cast<std::uint32_t>((address >> 21U) + index);
    fresh.program = static_cast<std::uint16_t>(program) & 0xFU;
  }
  if (auto const rest = pages % pages_per_block; rest != 0) {
    blocks_[first + count - 1].page_count = static_cast<std::uint16_t>(rest) & 0x3FFU;
  }
  return first;
}

void block_table::give_back(std::uint32_t first, std::uint32_t count) noexcept
{
  for (auto number = first; number < first + count; ++number) {
    auto& gone = blocks_[number];
    sets_.release(gone.on_host);
    sets_.release(gone.host_pages);
    sets_.release(gone.discarded);
    sets_.release(gone.read_only);
    gone = {};
    for (unsigned gpu = 0; gpu < gpus_; ++gpu) {
      sets_.release(on_gpus_[index(number, gpu)]);
      on_gpus_[index(number, gpu)] = page_set_store::empty;
    }
  }
  try {
    auto const after = free_.upper_bound(first);
    auto here        = free_.emplace_hint(after, first, count);
    if (after != free_.end() && first + count == after->first) {
      here->second += after->second;
      free_.erase(after);
    }
    if (here == free_.begin()) { return; }
    auto const before = std::prev(here);
    if (before->first + before->second == first) {
      before->second += here->second;
      free_.erase(here);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): the numbers are lost, and nothing else
  }
}

std::size_t block_table::bytes() const noexcept
{
  return blocks_.capacity() * sizeof(entry) + on_gpus_.capacity() * sizeof(page_set_store::handle) +
         sets_.bytes();
}

}  // namespace rmm_uvm::sim

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/replay/slab_map.hpp>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace rmm_uvm::replay {

void slab_map::check(memory_range recorded) const
{
  if (recorded.bytes == 0 || recorded.bytes % va_block_bytes != 0 ||
      recorded.address % va_block_bytes != 0) {
    throw std::invalid_argument{"a slab is made of whole blocks of 2 MiB, at least one"};
  }
  if (!slabs_.empty() && recorded.address < slabs_.back().recorded.end()) {
    throw std::invalid_argument{"slabs come in ascending order and do not overlap"};
  }
  if (recorded.end() < recorded.address) {
    throw std::invalid_argument{"a slab ends within the address space"};
  }
}

void slab_map::add(memory_range recorded, std::uintptr_t address)
{
  check(recorded);
  if (address % va_block_bytes != 0) {
    throw std::invalid_argument{"a slab's stand-in begins at a block boundary"};
  }
  slabs_.push_back({recorded, address, block_count_});
  block_count_ += recorded.bytes / va_block_bytes;
}

std::optional<located_range> slab_map::locate(memory_range recorded) const noexcept
{
  auto const after = std::upper_bound(
    slabs_.begin(), slabs_.end(), recorded.address, [](std::uintptr_t address, slab const& one) {
      return address < one.recorded.address;
    });
  if (after == slabs_.begin()) { return std::nullopt; }
  auto const& found = *std::prev(after);
  auto const offset = recorded.address - found.recorded.address;
  // Not by `recorded.end()`, which an absurd length takes past the end of the address space.
  if (offset >= found.recorded.bytes || recorded.bytes > found.recorded.bytes - offset) {
    return std::nullopt;
  }
  return located_range{{found.address + offset, recorded.bytes},
                       found.first_block + offset / va_block_bytes,
                       static_cast<std::size_t>(std::prev(after) - slabs_.begin())};
}

std::uintptr_t slab_map::address_of(std::size_t block) const noexcept
{
  auto const after =
    std::upper_bound(slabs_.begin(), slabs_.end(), block, [](std::size_t number, slab const& one) {
      return number < one.first_block;
    });
  auto const& found = *std::prev(after);
  return found.address + (block - found.first_block) * va_block_bytes;
}

bool slab_map::begins_slab(std::size_t block) const noexcept
{
  return std::binary_search(
    slabs_.begin(), slabs_.end(), slab{{}, 0, block}, [](slab const& one, slab const& other) {
      return one.first_block < other.first_block;
    });
}

}  // namespace rmm_uvm::replay

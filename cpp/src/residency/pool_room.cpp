// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/pool_room.hpp>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

namespace rmm_uvm {
namespace {

/** @brief The first run of a map that ends behind `address`. */
template <typename Map>
[[nodiscard]] auto first_behind(Map& runs, std::uintptr_t address)
{
  auto it = runs.upper_bound(address);
  if (it != runs.begin() && std::prev(it)->first + std::prev(it)->second > address) { --it; }
  return it;
}

}  // namespace

void pool_room::count_slabs(std::size_t bytes) noexcept
{
  slab_bytes_ = bytes;
  auto const spare =
    maximum_bytes_ == unlimited ? unlimited : maximum_bytes_ - std::min(bytes, maximum_bytes_);
  spare_bytes_.store(spare);
  unasked_bytes_.store(part_bytes_ > 0 ? 0 : spare);
}

bool pool_room::admits_slab(std::size_t bytes) const
{
  auto const asked = request::asked();
  if (asked.bytes == request::beside) { return true; }
  if (asked.bytes == request::no_slab) { return false; }
  std::lock_guard const lock{slabs_mutex_};
  if (bytes > spare_bytes()) {
    return asked.passes && asked.bytes > 0 && bytes <= std::max(maximum_bytes_ / 16, asked.bytes);
  }
  return part_bytes_ == 0 || bytes <= std::max({slab_bytes_, part_bytes_, asked.bytes});
}

void pool_room::note_trimmed(std::size_t pool_maximum_bytes)
{
  constexpr std::size_t most_part_bytes = std::size_t{256} << 20U;
  auto const part                       = std::min(pool_maximum_bytes, maximum_bytes_) / 64;
  std::lock_guard const lock{slabs_mutex_};
  part_bytes_ = std::clamp(part, std::size_t{1}, most_part_bytes);
  count_slabs(slab_bytes_);
}

void pool_room::note_given_back(std::size_t bytes, bool freed) noexcept
{
  if (request::asked().bytes != request::no_slab) { return; }
  std::lock_guard const lock{slabs_mutex_};
  (freed ? given_back_.bytes : given_back_.lost_bytes) += bytes;
}

pool_room::given_back pool_room::take_given_back() noexcept
{
  std::lock_guard const lock{slabs_mutex_};
  return std::exchange(given_back_, {});
}

bool pool_room::add_slab(memory_range slab)
{
  if (request::asked().bytes == request::beside) { return true; }
  std::lock_guard const lock{slabs_mutex_};
  slabs_.emplace(slab.address, slab.bytes);
  bool const fits = slab_bytes_ + slab.bytes <= maximum_bytes_;
  if (!fits) {
    try {
      empty_.emplace(slab.address, slab.bytes);
    } catch (...) {
      slabs_.erase(slab.address);
      throw;
    }
    empty_bytes_ += slab.bytes;
  }
  count_slabs(slab_bytes_ + slab.bytes);
  return fits;
}

void pool_room::remove_slab(std::uintptr_t address) noexcept
{
  std::lock_guard const lock{slabs_mutex_};
  auto const found = slabs_.find(address);
  if (found == slabs_.end()) { return; }
  auto it = empty_.lower_bound(address);
  while (it != empty_.end() && it->first < address + found->second) {
    empty_bytes_ -= it->second;
    it = empty_.erase(it);
  }
  count_slabs(slab_bytes_ - found->second);
  slabs_.erase(found);
  if (slab_bytes_ <= maximum_bytes_) {  // from here on nobody says what is populated
    empty_.clear();
    empty_bytes_ = 0;
  }
}

std::size_t pool_room::slab_bytes() const
{
  std::lock_guard const lock{slabs_mutex_};
  return slab_bytes_;
}

void pool_room::populate(memory_range allocation, std::vector<memory_range>* were_empty)
{
  auto const begin = va_block_floor(allocation.address);
  std::lock_guard const lock{slabs_mutex_};
  take_from_empty({begin, va_block_ceil(allocation.end()) - begin}, were_empty);
}

void pool_room::empty(std::span<memory_range const> blocks)
{
  std::lock_guard const lock{slabs_mutex_};
  for (auto const& run : blocks) {
    take_from_empty(run);
    empty_.emplace(run.address, run.bytes);
    empty_bytes_ += run.bytes;
  }
}

std::size_t pool_room::populated_bytes() const
{
  std::lock_guard const lock{slabs_mutex_};
  return slab_bytes_ - empty_bytes_;
}

/** @brief Parts of runs that a range cuts through stay; what is behind it is put back first. */
void pool_room::take_from_empty(memory_range range, std::vector<memory_range>* taken)
{
  auto it = first_behind(empty_, range.address);
  while (it != empty_.end() && it->first < range.end()) {
    memory_range const run{it->first, it->second};
    if (taken != nullptr) {
      auto const address = std::max(run.address, range.address);
      taken->push_back({address, std::min(run.end(), range.end()) - address});
    }
    if (run.end() > range.end()) { empty_.emplace(range.end(), run.end() - range.end()); }
    empty_bytes_ -= bytes_in_common(run, range);
    if (run.address < range.address) {
      it->second = range.address - run.address;
      ++it;
    } else {
      it = empty_.erase(it);
    }
  }
}

std::vector<memory_range> pool_room::dead_in(memory_range piece) const
{
  std::vector<memory_range> dead;
  std::lock_guard const lock{slabs_mutex_};
  auto const slab = first_behind(slabs_, piece.address);
  if (slab == slabs_.end() || slab->first > piece.address) { return dead; }
  // A block that the slab's end cuts off counts as whole. The last part of 256 bytes is in no
  // piece.
  auto const slab_end = slab->first + slab->second;
  auto const end      = piece.end() + 256 > slab_end ? slab_end : va_block_floor(piece.end());
  auto address        = va_block_ceil(piece.address);
  for (auto it = first_behind(empty_, address); address < end; ++it) {
    auto const next = it == empty_.end() ? end : std::min(it->first, end);
    if (next > address) { dead.push_back({address, next - address}); }
    if (it == empty_.end()) { break; }
    address = it->first + it->second;
  }
  return dead;
}

std::vector<memory_range> pool_room::free_pieces(std::vector<memory_range> live,
                                                 std::size_t granularity) const
{
  auto const by_address = [](auto const& a, auto const& b) { return a.address < b.address; };
  std::sort(live.begin(), live.end(), by_address);
  std::vector<memory_range> free;
  std::lock_guard const lock{slabs_mutex_};
  for (auto const& [slab, bytes] : slabs_) {
    auto const slab_end = slab + bytes / granularity * granularity;
    auto address        = slab;
    auto it = std::lower_bound(live.begin(), live.end(), memory_range{slab, 0}, by_address);
    for (; address < slab_end; ++it) {
      auto const end = it == live.end() ? slab_end : std::min(it->address, slab_end);
      if (end > address) { free.push_back({address, end - address}); }
      if (it == live.end()) { break; }
      address = (it->end() + granularity - 1) & ~(granularity - 1);
    }
  }
  return free;
}

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/segment_map.hpp>

#include <algorithm>
#include <iterator>

namespace rmm_uvm {
namespace {

constexpr std::size_t most_sizes = 1U << 16U;  // a program that never repeats itself is forgotten

[[nodiscard]] std::uint64_t place_of(std::span<std::uintptr_t const> before,
                                     std::uintptr_t start) noexcept
{
  std::uint64_t place = 0;
  for (auto const one : before) {
    place = (place ^ one) * 0x9E3779B97F4A7C15ULL;
    place ^= place >> 32U;  // or what differs in the upper bits would never reach the lower ones
  }
  return place ^ start;
}

}  // namespace

void segment_map::add_free(memory_range segment)
{
  segments_[segment.address] = {segment, true};
  parts_[segment.address]    = {segment.end(), false};
}

void segment_map::add_unknown(memory_range segment)
{
  segments_[segment.address] = {segment, false};
}

void segment_map::remove(std::uintptr_t segment) noexcept
{
  auto const found = segments_.find(segment);
  if (found == segments_.end()) { return; }
  auto const range = found->second.range;
  parts_.erase(parts_.lower_bound(range.address), parts_.lower_bound(range.end()));
  told_.erase(told_.lower_bound(range.address), told_.lower_bound(range.end()));
  segments_.erase(found);
}

std::vector<memory_range> segment_map::list(std::uintptr_t segment,
                                            std::span<memory_range const> live)
{
  std::vector<memory_range> free;
  auto const found = segments_.find(segment);
  if (found == segments_.end() || found->second.known) { return free; }
  auto const range = found->second.range;
  auto const first = told_.lower_bound(range.address);
  auto const last  = told_.lower_bound(range.end());
  std::map<std::uintptr_t, std::uintptr_t> ends;  // of the live ones, by start
  for (auto const& one : live) {
    if (!told_.contains(one.address)) { ends[one.address] = one.end(); }
  }
  for (auto it = first; it != last; ++it) {  // what was told is newer than the list
    if (it->second) { ends[it->first] = range.end(); }
  }
  for (auto it = first; it != last; ++it) {
    auto const next = ends.upper_bound(it->first);
    if (it->second && next != ends.end()) { ends[it->first] = next->first; }
  }
  auto const add_free_part = [&](std::uintptr_t from, std::uintptr_t to) {
    if (from >= to) { return; }
    parts_[from] = {to, false};
    free.push_back({from, to - from});
  };
  auto place = range.address;
  for (auto const& [start, live_end] : ends) {
    auto const begin = std::max(start, place);
    auto const end   = std::min(live_end, range.end());
    if (begin >= end) { continue; }
    add_free_part(place, begin);
    parts_[begin] = {end, true};
    place         = end;
  }
  add_free_part(place, range.end());
  told_.erase(first, last);
  found->second.known = true;
  return free;
}

segment_map::part_map::iterator segment_map::part_of(std::uintptr_t address)
{
  auto it = parts_.upper_bound(address);
  if (it == parts_.begin()) { return parts_.end(); }
  it = std::prev(it);
  return address < it->second.end ? it : parts_.end();
}

/** @brief Keeps what is told of an unknown segment, for the list that is about to be made. */
void segment_map::note_untracked(std::uintptr_t start, bool live)
{
  if (auto const segment = segment_of(start); segment && !segment->known) { told_[start] = live; }
}

std::optional<carved_range> segment_map::on_allocate(std::uintptr_t start)
{
  auto const found = part_of(start);
  if (found == parts_.end()) {
    note_untracked(start, true);
    return std::nullopt;
  }
  auto const own = parts_.try_emplace(start).first;  // first: it may throw
  auto end       = found->second.end;
  memory_range newly_live{start, end - start};
  if (found->second.live) {
    newly_live = {end, 0};
    // The allocator has joined what the live part did not use with what was freed behind it.
    auto const next    = std::next(own);
    auto const segment = segment_of(start)->range;
    if (next != parts_.end() && !next->second.live && next->first < segment.end()) {
      newly_live.bytes = next->second.end - end;
      end              = next->second.end;
      parts_.erase(next);
    }
  }
  if (found != own) { found->second.end = start; }
  auto const place = place_of(before_, start);
  std::shift_left(before_.begin(), before_.end(), 1);
  before_.back() = start;
  own->second    = {end, true, place, 0};
  carved_range carved{{start, end - start}, newly_live, 0};
  auto const size = sizes_.find(place);
  if (size != sizes_.end()) {  // to bring too much costs little, and what is missing faults
    auto const likely_bytes = std::max(size->second.newer, size->second.older);
    carved.likely_bytes     = std::min(likely_bytes, carved.extent.bytes);
  }
  return carved;
}

memory_range segment_map::on_free(std::uintptr_t start)
{
  auto const found = parts_.find(start);
  if (found == parts_.end()) { note_untracked(start, false); }
  if (found == parts_.end() || !found->second.live) { return {start, 0}; }
  memory_range const freed{start, found->second.end - start};
  auto& freed_part = found->second;
  if (freed_part.place != 0) {
    if (sizes_.size() >= most_sizes) { sizes_.clear(); }
    auto& sizes = sizes_[freed_part.place];
    sizes.older = sizes.newer;
    sizes.newer = freed_part.measured_bytes == 0 ? freed.bytes
                                                 : std::min(freed_part.measured_bytes, freed.bytes);
  }
  freed_part         = {freed_part.end, false, 0, 0};
  auto const segment = std::prev(segments_.upper_bound(start))->second.range;
  if (auto const next = std::next(found);
      next != parts_.end() && !next->second.live && next->first < segment.end()) {
    found->second.end = next->second.end;
    parts_.erase(next);
  }
  if (start > segment.address) {
    auto const before = std::prev(found);
    if (!before->second.live) {
      before->second.end = found->second.end;
      parts_.erase(found);
    }
  }
  return freed;
}

bool segment_map::is_free(memory_range segment) const
{
  auto const found = parts_.find(segment.address);
  return found != parts_.end() && !found->second.live && found->second.end == segment.end();
}

void segment_map::measured(std::uintptr_t start, std::size_t bytes) noexcept
{
  auto const found = parts_.find(start);
  if (found != parts_.end() && found->second.live) { found->second.measured_bytes = bytes; }
}

std::optional<segment_map::held_segment> segment_map::segment_of(std::uintptr_t address) const
{
  auto it = segments_.upper_bound(address);
  if (it == segments_.begin()) { return std::nullopt; }
  it = std::prev(it);
  if (address >= it->second.range.end()) { return std::nullopt; }
  return it->second;
}

}  // namespace rmm_uvm

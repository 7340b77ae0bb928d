// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

/**
 * @brief Hands out parts of segments as PyTorch's caching allocator does: best fit, split and
 * joined.
 *
 * A part is split from its beginning, unless little would be left over: then all of it is handed
 * out. Parts of different segments are never joined, though segments touch.
 */
class caching_allocator {
 public:
  static constexpr std::size_t alignment_bytes = 512;        ///< of sizes
  static constexpr std::size_t least_left      = 64U << 10;  ///< bytes that are worth a split

  /** @brief Has allocations come from `segment` too. */
  void add_segment(memory_range segment)
  {
    segments_[segment.address] = segment;
    parts_[segment.address]    = {segment.bytes, false};
  }
  /** @brief The smallest free part that holds `bytes`, the lowest of these; none if none does. */
  [[nodiscard]] std::optional<std::uintptr_t> take(std::size_t bytes)
  {
    auto const wanted = rounded(bytes);
    auto best         = parts_.end();
    for (auto it = parts_.begin(); it != parts_.end(); ++it) {
      auto const& [part_bytes, live] = it->second;
      if (live || part_bytes < wanted) { continue; }
      if (best == parts_.end() || part_bytes < best->second.first) { best = it; }
    }
    if (best == parts_.end()) { return std::nullopt; }
    auto const left = best->second.first - wanted;
    if (left >= least_left) {
      parts_[best->first + wanted] = {left, false};
      best->second.first           = wanted;
    }
    best->second.second = true;
    return best->first;
  }
  /** @brief Takes a part back. */
  void give(std::uintptr_t address)
  {
    auto it           = parts_.find(address);
    it->second.second = false;
    auto const next   = std::next(it);
    if (next != parts_.end() && !next->second.second && !segments_.contains(next->first)) {
      it->second.first += next->second.first;
      parts_.erase(next);
    }
    if (segments_.contains(address)) { return; }
    auto const before = std::prev(it);
    if (before->second.second) { return; }
    before->second.first += it->second.first;
    parts_.erase(it);
  }
  /** @brief What was handed out at `address`, all that its user may touch. */
  [[nodiscard]] memory_range at(std::uintptr_t address) const
  {
    return {address, parts_.at(address).first};
  }
  /** @brief Everything that is handed out. */
  [[nodiscard]] std::vector<memory_range> live() const
  {
    std::vector<memory_range> found;
    for (auto const& [address, part] : parts_) {
      if (part.second) { found.push_back({address, part.first}); }
    }
    return found;
  }
  /** @brief `bytes` as they are handed out where a part is split. */
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept
  {
    return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  }

 private:
  std::map<std::uintptr_t, memory_range> segments_;
  std::map<std::uintptr_t, std::pair<std::size_t, bool>> parts_;  // bytes, and whether it is live
};

}  // namespace rmm_uvm::tests

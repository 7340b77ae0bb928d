// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace rmm_uvm::tests {

/**
 * @brief Hands out parts of a slab at 256-byte offsets, as RMM's pool does: first fit, thread-safe.
 *
 * Stands in for the pool where RMM is not on the include path.
 */
class first_fit {
 public:
  static constexpr std::size_t alignment = 256;  ///< of addresses and sizes, as RMM's pool

  explicit first_fit(memory_range slab) { free_.emplace(slab.address, slab.bytes); }

  /** @brief The first free part that holds `bytes`; nothing when none does. */
  [[nodiscard]] std::optional<std::uintptr_t> take(std::size_t bytes)
  {
    std::lock_guard const lock{mutex_};
    auto const wanted = rounded(bytes);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      auto const [address, free_bytes] = *it;
      if (free_bytes < wanted) { continue; }
      free_.erase(it);
      if (free_bytes > wanted) { free_.emplace(address + wanted, free_bytes - wanted); }
      return address;
    }
    return std::nullopt;
  }

  /** @brief Takes a part back and joins it with its free neighbours. */
  void give(std::uintptr_t address, std::size_t bytes)
  {
    std::lock_guard const lock{mutex_};
    auto it = free_.emplace(address, rounded(bytes)).first;
    if (auto const next = std::next(it);
        next != free_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it == free_.begin()) { return; }
    if (auto const before = std::prev(it); before->first + before->second == it->first) {
      before->second += it->second;
      free_.erase(it);
    }
  }

 private:
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept
  {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> free_;  // size by address
};

}  // namespace rmm_uvm::tests

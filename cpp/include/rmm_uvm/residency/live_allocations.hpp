// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace rmm_uvm {

/**
 * @brief The allocations that a resource has handed out and not taken back.
 *
 * Catches a second free and a free with a wrong size before they reach a pool, which would be
 * corrupted by them. Sharded by address, so that threads rarely meet. Thread-safe.
 */
class live_allocations {
 public:
  /** @brief Notes a new allocation. */
  void insert(std::uintptr_t address, std::size_t bytes)
  {
    auto& shard = shard_of(address);
    std::lock_guard const lock{shard.mutex};
    shard.bytes_of.insert_or_assign(address, bytes);
  }

  /**
   * @brief Forgets an allocation.
   * @return false, and nothing changes, if address and size do not match one
   */
  [[nodiscard]] bool erase(std::uintptr_t address, std::size_t bytes) noexcept
  {
    auto& shard = shard_of(address);
    std::lock_guard const lock{shard.mutex};
    auto const it = shard.bytes_of.find(address);
    if (it == shard.bytes_of.end() || it->second != bytes) { return false; }
    shard.bytes_of.erase(it);
    return true;
  }

  /** @brief The size of the live allocation that begins at `address`. */
  [[nodiscard]] std::optional<std::size_t> bytes_at(std::uintptr_t address) const
  {
    auto const& shard = shard_of(address);
    std::lock_guard const lock{shard.mutex};
    auto const it = shard.bytes_of.find(address);
    if (it == shard.bytes_of.end()) { return std::nullopt; }
    return it->second;
  }

  /**
   * @brief The live allocation that holds `address`, which may be inside of it.
   *
   * For hints: looks at all allocations unless one begins there, a shard at a time.
   */
  [[nodiscard]] std::optional<memory_range> holding(std::uintptr_t address) const
  {
    if (auto const bytes = bytes_at(address)) { return memory_range{address, *bytes}; }
    for (auto const& shard : shards_) {
      std::lock_guard const lock{shard.mutex};
      for (auto const& [begin, bytes] : shard.bytes_of) {
        if (begin <= address && address - begin < bytes) { return memory_range{begin, bytes}; }
      }
    }
    return std::nullopt;
  }

  /** @brief Calls `visit(memory_range)` for every allocation, a shard at a time. */
  template <typename Visit>
  void each(Visit const& visit) const
  {
    for (auto const& shard : shards_) {
      std::lock_guard const lock{shard.mutex};
      for (auto const& [begin, bytes] : shard.bytes_of) {
        visit(memory_range{begin, bytes});
      }
    }
  }

 private:
  static constexpr std::size_t shard_count = 16;
  struct alignas(64) shard_t {  // a cache line each
    mutable ranked_mutex<lock_rank::live_allocations> mutex;
    std::unordered_map<std::uintptr_t, std::size_t> bytes_of;
  };

  [[nodiscard]] static std::size_t index_of(std::uintptr_t address) noexcept
  {
    // Pools align to 256 bytes: the low 8 bits say nothing. Fibonacci hashing spreads the rest.
    return static_cast<std::size_t>(((address >> 8U) * 0x9E3779B97F4A7C15ULL) >> 60U);
  }
  [[nodiscard]] shard_t& shard_of(std::uintptr_t address) noexcept
  {
    return shards_[index_of(address)];
  }
  [[nodiscard]] shard_t const& shard_of(std::uintptr_t address) const noexcept
  {
    return shards_[index_of(address)];
  }

  std::array<shard_t, shard_count> shards_;
};

}  // namespace rmm_uvm

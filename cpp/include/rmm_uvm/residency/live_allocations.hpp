// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/freed_nodes.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace rmm_uvm {

/**
 * @brief The allocations that a resource has handed out and not taken back.
 *
 * Catches a second free and a free with a wrong size before they reach a pool, which would be
 * corrupted by them. Sharded by address, so that threads rarely meet. Thread-safe.
 *
 * An address inside of an allocation is found without a look at all of them. From the first time
 * that somebody asks for one among many, large ones are in order besides. Of small ones the first
 * below the address holds it, or none does, and it begins at most the size of a small one below: so
 * its place is found by asking for every place there.
 */
class live_allocations {
 public:
  /** @brief Notes a new allocation. */
  void insert(std::uintptr_t address, std::size_t bytes)
  {
    if (address % place_bytes != 0) { between_places_.store(true, std::memory_order_relaxed); }
    auto& shard = shard_of(address);
    {
      std::lock_guard const lock{shard.mutex};
      shard.bytes_of.insert_or_assign(address, bytes);
    }
    if (bytes > small_bytes && kept_in_order_.load()) { insert_large(address, bytes); }
  }

  /**
   * @brief Forgets an allocation.
   * @return false, and nothing changes, if address and size do not match one
   */
  [[nodiscard]] bool erase(std::uintptr_t address, std::size_t bytes) noexcept
  {
    {
      auto& shard = shard_of(address);
      std::lock_guard const lock{shard.mutex};
      auto const it = shard.bytes_of.find(address);
      if (it == shard.bytes_of.end() || it->second != bytes) { return false; }
      shard.bytes_of.erase(it);
    }
    // The memory is still the caller's: nobody inserts the same address before this is over.
    if (bytes > small_bytes && kept_in_order_.load()) {
      std::lock_guard const lock{large_.mutex};
      large_.bytes_of.erase(address);
    }
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
   * @brief The live allocation that holds `address`, which may be inside of it; for hints.
   *
   * In the order of log n for n allocations, and of at most 8,192 places.
   */
  [[nodiscard]] std::optional<memory_range> holding(std::uintptr_t address) const
  {
    if (auto const bytes = bytes_at(address)) { return memory_range{address, *bytes}; }
    constexpr auto places = small_bytes / place_bytes;
    if (between_places_.load(std::memory_order_relaxed) || count() <= places) {
      return any_holding(address);
    }
    put_in_order();
    if (auto const found = large_holding(address)) { return found; }
    auto const last = address - address % place_bytes;
    for (std::size_t below = 0; below <= places && below * place_bytes <= last; ++below) {
      auto const begin = last - below * place_bytes;
      auto const bytes = bytes_at(begin);
      if (!bytes) { continue; }
      if (address - begin < *bytes) { return memory_range{begin, *bytes}; }
      break;  // what begins below would overlap this one
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
  static constexpr std::size_t place_bytes = 256;                    // pools align to that
  static constexpr std::size_t small_bytes = std::size_t{1} << 21U;  // of a small allocation

  struct alignas(64) shard_t {  // cache lines of its own
    using node = std::pair<std::uintptr_t const, std::size_t>;
    mutable ranked_mutex<lock_rank::live_allocations> mutex;
    freed_nodes freed;
    std::unordered_map<std::uintptr_t,
                       std::size_t,
                       std::hash<std::uintptr_t>,
                       std::equal_to<>,
                       node_allocator<node>>
      bytes_of{node_allocator<node>{freed}};
  };

  /** @brief Has large allocations be in order from now on: those that are there, and others. */
  void put_in_order() const
  {
    if (in_order_.load()) { return; }
    std::lock_guard const once{ordering_mutex_};
    kept_in_order_ = true;  // first: who comes or goes from now on sees to it
    for (auto const& shard : shards_) {
      std::lock_guard const lock{shard.mutex};
      for (auto const& [address, bytes] : shard.bytes_of) {
        if (bytes > small_bytes) { insert_large(address, bytes); }
      }
    }
    in_order_ = true;
  }
  void insert_large(std::uintptr_t address, std::size_t bytes) const
  {
    std::lock_guard const lock{large_.mutex};
    large_.bytes_of.insert_or_assign(address, bytes);
  }
  [[nodiscard]] std::optional<memory_range> large_holding(std::uintptr_t address) const
  {
    std::lock_guard const lock{large_.mutex};
    auto const above = large_.bytes_of.upper_bound(address);
    if (above == large_.bytes_of.begin()) { return std::nullopt; }
    auto const& [begin, bytes] = *std::prev(above);
    return address - begin < bytes ? std::optional{memory_range{begin, bytes}} : std::nullopt;
  }
  [[nodiscard]] std::size_t count() const
  {
    std::size_t found = 0;
    for (auto const& shard : shards_) {
      std::lock_guard const lock{shard.mutex};
      found += shard.bytes_of.size();
    }
    return found;
  }
  [[nodiscard]] std::optional<memory_range> any_holding(std::uintptr_t address) const
  {
    for (auto const& shard : shards_) {
      std::lock_guard const lock{shard.mutex};
      for (auto const& [begin, bytes] : shard.bytes_of) {
        if (begin <= address && address - begin < bytes) { return memory_range{begin, bytes}; }
      }
    }
    return std::nullopt;
  }
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

  struct alignas(64) large_t {
    ranked_mutex<lock_rank::large_allocations> mutex;
    std::map<std::uintptr_t, std::size_t> bytes_of;
  };

  std::array<shard_t, shard_count> shards_;
  mutable large_t large_;
  mutable ranked_mutex<lock_rank::live_order> ordering_mutex_;
  mutable std::atomic<bool> kept_in_order_{false};  // who inserts or erases sees to `large_`
  mutable std::atomic<bool> in_order_{false};       // `large_` has all that it should
  std::atomic<bool> between_places_{false};         // some began at no multiple of a place
};

}  // namespace rmm_uvm

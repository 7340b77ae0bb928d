// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <atomic>
#include <cstdint>
#include <span>

namespace rmm_uvm {

/**
 * @brief Bytes that a driver was asked to move or drop since it was made; calls that failed do not
 * count.
 *
 * What was asked for, and so an upper bound: pages that were there already are not copied.
 */
struct command_totals {
  std::uint64_t prefetched_to_device_bytes{0};  ///< of prefetches to a device
  std::uint64_t prefetched_to_host_bytes{0};    ///< of prefetches to the host
  std::uint64_t discarded_bytes{0};             ///< of discards, prefetched afterwards or not
};

/** @brief Adds up what became of commands. Thread-safe and lock-free. */
class command_count {
 public:
  /** @brief A prefetch succeeded. */
  void prefetched(std::size_t bytes, location where) noexcept
  {
    (where.is_host() ? to_host_ : to_device_).fetch_add(bytes, std::memory_order_relaxed);
  }
  /** @brief A discard, alone or with a prefetch, succeeded. */
  void discarded(std::span<memory_range const> ranges) noexcept
  {
    std::uint64_t bytes = 0;
    for (auto const& range : ranges) {
      bytes += range.bytes;
    }
    discarded_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /** @brief The sums now. */
  [[nodiscard]] command_totals read() const noexcept
  {
    return {to_device_.load(std::memory_order_relaxed),
            to_host_.load(std::memory_order_relaxed),
            discarded_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> to_device_{0};
  std::atomic<std::uint64_t> to_host_{0};
  std::atomic<std::uint64_t> discarded_{0};
};

}  // namespace rmm_uvm

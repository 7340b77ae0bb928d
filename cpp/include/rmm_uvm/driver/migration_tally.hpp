// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/migration_events.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Sums of what moved: by direction and cause, and by 2 MiB block.
 *
 * What every `migration_events` is made of. Memory is bounded: when there are too many blocks, the
 * quieter half is forgotten, and what it had moved is counted. Thread-safe: one mutex.
 */
class migration_tally {
 public:
  /** @brief Blocks that are remembered by default: those of 128 GiB, in about 4 MiB. */
  static constexpr std::size_t default_most_blocks = 65'536;

  /** @param most_blocks how many blocks are remembered at most, > 0 */
  explicit migration_tally(std::size_t most_blocks = default_most_blocks)
    : most_blocks_{most_blocks}
  {
  }

  /** @brief Begins again at zero. */
  void clear() noexcept
  {
    std::lock_guard const lock{mutex_};
    totals_ = {};
    blocks_.clear();
  }

  /** @brief `pages` moved from the host to the device. */
  void to_device(migration_cause cause, memory_range pages) noexcept
  {
    std::lock_guard const lock{mutex_};
    totals_.host_to_device_bytes[index_of(cause)] += pages.bytes;
    enter(pages, &traffic::host_to_device_bytes);
  }

  /** @brief `pages` moved from the device to the host. */
  void to_host(migration_cause cause, memory_range pages) noexcept
  {
    std::lock_guard const lock{mutex_};
    totals_.device_to_host_bytes[index_of(cause)] += pages.bytes;
    enter(pages, &traffic::device_to_host_bytes);
  }

  /** @brief Adds to one of the totals that have no cause. */
  void count(std::uint64_t cause_totals::* total, std::uint64_t more) noexcept
  {
    std::lock_guard const lock{mutex_};
    totals_.*total += more;
  }

  /** @brief The sums now. */
  [[nodiscard]] cause_totals totals() const noexcept
  {
    std::lock_guard const lock{mutex_};
    return totals_;
  }

  /** @brief The blocks that moved most, busiest first, then by address. */
  [[nodiscard]] std::vector<block_traffic> busiest(std::size_t most) const
  {
    std::vector<block_traffic> found;
    {
      std::lock_guard const lock{mutex_};
      found.reserve(blocks_.size());
      for (auto const& [address, moved] : blocks_) {
        found.push_back({address, moved.host_to_device_bytes, moved.device_to_host_bytes});
      }
    }
    auto const end = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
    std::partial_sort(found.begin(), end, found.end(), [](auto const& one, auto const& other) {
      auto const bytes       = one.host_to_device_bytes + one.device_to_host_bytes;
      auto const other_bytes = other.host_to_device_bytes + other.device_to_host_bytes;
      return bytes != other_bytes ? bytes > other_bytes : one.address < other.address;
    });
    found.erase(end, found.end());
    return found;
  }

 private:
  struct traffic {
    std::uint64_t host_to_device_bytes{0};
    std::uint64_t device_to_host_bytes{0};
    [[nodiscard]] std::uint64_t bytes() const noexcept
    {
      return host_to_device_bytes + device_to_host_bytes;
    }
  };

  [[nodiscard]] static std::size_t index_of(migration_cause cause) noexcept
  {
    // A cause that a newer driver invents is unknown to us.
    auto const index = static_cast<std::size_t>(cause);
    return index < migration_cause_count ? index : 0;
  }

  void enter(memory_range pages, std::uint64_t traffic::* direction) noexcept
  try {
    for (auto address = pages.address; address < pages.end();) {
      auto const block = va_block_floor(address);
      auto const end   = std::min(pages.end(), block + va_block_bytes);
      blocks_[block].*direction += end - address;
      address = end;
    }
    if (blocks_.size() > most_blocks_) { forget_quieter_half(); }
  } catch (...) {  // no memory for another block: the totals stay right
    totals_.forgotten_bytes += pages.bytes;
  }

  void forget_quieter_half()
  {
    std::vector<std::uint64_t> bytes;
    bytes.reserve(blocks_.size());
    for (auto const& block : blocks_) {
      bytes.push_back(block.second.bytes());
    }
    auto excess       = blocks_.size() - most_blocks_ / 2;
    auto const median = bytes.begin() + static_cast<std::ptrdiff_t>(excess - 1);
    std::nth_element(bytes.begin(), median, bytes.end());
    auto const quiet = *median;
    // First what is certainly among the quieter ones, then as many of the equals as have to go.
    for (bool const equals : {false, true}) {
      for (auto it = blocks_.begin(); it != blocks_.end() && excess > 0;) {
        auto const moved = it->second.bytes();
        bool const goes  = equals ? moved == quiet : moved < quiet;
        totals_.forgotten_bytes += goes ? moved : 0;
        excess -= goes ? 1 : 0;
        it = goes ? blocks_.erase(it) : std::next(it);
      }
    }
  }

  mutable ranked_mutex<lock_rank::tally> mutex_;
  std::size_t most_blocks_;
  cause_totals totals_;
  std::unordered_map<std::uintptr_t, traffic> blocks_;
};

}  // namespace rmm_uvm

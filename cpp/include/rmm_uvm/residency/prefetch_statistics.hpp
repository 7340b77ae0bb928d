// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace rmm_uvm {

/** @brief Why an allocation or a slab was not prefetched. Counted, never silent. */
enum class skip_reason : std::uint8_t {
  resident = 0,                  ///< on the device already
  mode_never,                    ///< switched off by the user
  no_concurrent_managed_access,  ///< the platform cannot prefetch (WSL2, Windows)
  larger_than_device,            ///< would evict its own beginning
  no_free_memory,                ///< slabs only: blocks come as allocations need them
  capturing,                     ///< the stream records a graph
  capture_unknown,               ///< whether it records cannot be known
  integrated                     ///< device memory is host memory: there is nothing to move
};
inline constexpr std::size_t skip_reason_count = 8;  ///< number of `skip_reason` values

/** @brief Name of a reason, as it appears in metrics. */
[[nodiscard]] constexpr char const* to_string(skip_reason reason) noexcept
{
  switch (reason) {
    case skip_reason::resident: return "resident";
    case skip_reason::mode_never: return "mode_never";
    case skip_reason::no_concurrent_managed_access: return "no_concurrent_managed_access";
    case skip_reason::larger_than_device: return "larger_than_device";
    case skip_reason::no_free_memory: return "no_free_memory";
    case skip_reason::capturing: return "capturing";
    case skip_reason::capture_unknown: return "capture_unknown";
    case skip_reason::integrated: return "integrated";
  }
  return "unknown";
}

/** @brief What was prefetched and discarded without a budget; a copy. */
struct prefetch_statistics {
  std::uint64_t slab_prefetched_bytes{0};  ///< bytes of slabs prefetched as the pool took them
  std::uint64_t prefetch_calls{0};         ///< prefetches issued for allocations
  std::uint64_t prefetched_bytes{0};       ///< bytes of those ranges, resident ones included
  std::uint64_t discard_calls{0};          ///< batch calls of discards
  std::uint64_t discarded_bytes{0};        ///< bytes of those ranges: dead, never copied
  std::uint64_t undiscarded_bytes{0};      ///< dead, but handed out while their stream was busy:
                                           ///< prefetched with their contents
  std::uint64_t failed_calls{0};           ///< driver calls that failed; pages come by fault
  status last_failure;                     ///< the latest of those
  std::array<std::uint64_t, skip_reason_count> skipped{};  ///< by `skip_reason`
};

/** @brief The live counts behind `prefetch_statistics`. Thread-safe, relaxed. */
class prefetch_counts {
 public:
  void add_slab(std::size_t bytes) noexcept { slab_bytes_.fetch_add(bytes, relaxed); }  ///< bytes
  void add_prefetch(std::size_t bytes) noexcept                                         ///< bytes
  {
    prefetch_calls_.fetch_add(1, relaxed);
    prefetch_bytes_.fetch_add(bytes, relaxed);
  }
  void add_discard(std::size_t bytes) noexcept  ///< bytes
  {
    discard_calls_.fetch_add(1, relaxed);
    discard_bytes_.fetch_add(bytes, relaxed);
  }
  void add_undiscarded(std::size_t bytes) noexcept  ///< bytes
  {
    undiscarded_bytes_.fetch_add(bytes, relaxed);
  }
  void add_skip(skip_reason reason) noexcept  ///< one request skipped
  {
    skipped_[static_cast<std::size_t>(reason)].fetch_add(1, relaxed);
  }
  void add_failure(status failure) noexcept  ///< one call failed
  {
    failed_.fetch_add(1, relaxed);
    std::lock_guard const lock{failure_mutex_};
    last_failure_ = failure;
  }
  /** @brief Bytes prefetched, less those of slabs: a new one is empty. Takes no lock. */
  [[nodiscard]] std::uint64_t prefetched_bytes() const noexcept
  {
    return prefetch_bytes_.load(relaxed);
  }
  /** @brief Bytes discarded; takes no lock. */
  [[nodiscard]] std::uint64_t discarded_bytes() const noexcept
  {
    return discard_bytes_.load(relaxed);
  }
  /** @brief Counts as they are now; taken one by one, so sums may be off by calls under way. */
  [[nodiscard]] prefetch_statistics snapshot() const noexcept
  {
    prefetch_statistics s;
    s.slab_prefetched_bytes = slab_bytes_.load(relaxed);
    s.prefetch_calls        = prefetch_calls_.load(relaxed);
    s.prefetched_bytes      = prefetch_bytes_.load(relaxed);
    s.discard_calls         = discard_calls_.load(relaxed);
    s.discarded_bytes       = discard_bytes_.load(relaxed);
    s.undiscarded_bytes     = undiscarded_bytes_.load(relaxed);
    s.failed_calls          = failed_.load(relaxed);
    {
      std::lock_guard const lock{failure_mutex_};
      s.last_failure = last_failure_;
    }
    for (std::size_t i = 0; i < skip_reason_count; ++i) {
      s.skipped[i] = skipped_[i].load(relaxed);
    }
    return s;
  }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  std::atomic<std::uint64_t> slab_bytes_{0};
  std::atomic<std::uint64_t> prefetch_calls_{0};
  std::atomic<std::uint64_t> prefetch_bytes_{0};
  std::atomic<std::uint64_t> discard_calls_{0};
  std::atomic<std::uint64_t> discard_bytes_{0};
  std::atomic<std::uint64_t> undiscarded_bytes_{0};
  std::atomic<std::uint64_t> failed_{0};
  mutable ranked_mutex<lock_rank::failures> failure_mutex_;
  status last_failure_;
  std::array<std::atomic<std::uint64_t>, skip_reason_count> skipped_{};
};

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Why pages moved; the order and the meaning are CUPTI's.
 *
 * Source: cupti_activity.h of CUDA 13, CUpti_ActivityUnifiedMemoryMigrationCause. A prefetch that
 * somebody asked for is `user`; `prefetch` is the kernel driver's own speculation.
 */
enum class migration_cause : std::uint8_t {
  unknown,
  user,
  coherence,
  prefetch,
  eviction,
  access_counters
};
inline constexpr std::size_t migration_cause_count = 6;

/** @brief Name of a cause, as in documents and in Python. */
[[nodiscard]] constexpr char const* to_string(migration_cause cause) noexcept
{
  switch (cause) {
    case migration_cause::unknown: return "unknown";
    case migration_cause::user: return "user";
    case migration_cause::coherence: return "coherence";
    case migration_cause::prefetch: return "prefetch";
    case migration_cause::eviction: return "eviction";
    case migration_cause::access_counters: return "access_counters";
  }
  return "unknown";
}

/** @brief Totals by cause since the source was started. */
struct cause_totals {
  std::array<std::uint64_t, migration_cause_count> host_to_device_bytes{};  ///< by cause
  std::array<std::uint64_t, migration_cause_count> device_to_host_bytes{};  ///< by cause
  std::uint64_t device_to_device_bytes{0};  ///< to this GPU from others; the cause is not told
  std::uint64_t cpu_faults{0};              ///< faults of the CPU, on pages of any device
  std::uint64_t gpu_fault_groups{0};        ///< groups of faults of the GPU on the same page
  std::uint64_t thrashing_bytes{0};         ///< regions that the kernel driver saw bouncing
  std::uint64_t throttling_ns{0};           ///< time for which processors were held back
  std::uint64_t remote_map_bytes{0};        ///< regions mapped instead of moved
  std::uint64_t dropped_records{0};         ///< records that were lost: the totals are too low then
  std::uint64_t forgotten_bytes{0};  ///< moved by blocks that `busiest` has no memory for any more
};

/** @brief One 2 MiB block that moved much. */
struct block_traffic {
  std::uintptr_t address{0};              ///< of the block
  std::uint64_t host_to_device_bytes{0};  ///< of it, moved to the device
  std::uint64_t device_to_host_bytes{0};  ///< of it, moved to the host
};

/**
 * @brief Observations with causes and addresses. Off until started, since they may cost much.
 *
 * Thread-safe.
 */
class migration_events {
 public:
  migration_events()                                   = default;
  migration_events(migration_events const&)            = delete;
  migration_events& operator=(migration_events const&) = delete;
  migration_events(migration_events&&)                 = delete;
  migration_events& operator=(migration_events&&)      = delete;
  virtual ~migration_events()                          = default;

  /**
   * @brief Begins to watch, with totals at zero; does nothing when it watches already.
   * @return whether it does, and if not, why (another profiler, ...)
   */
  [[nodiscard]] virtual availability start() = 0;
  /** @brief Stops watching; idempotent. The totals stay. May wait for a source. */
  virtual void stop() noexcept = 0;
  /** @brief The totals now; zeros before the first start. */
  [[nodiscard]] virtual cause_totals read() noexcept = 0;
  /** @brief The blocks that moved most, busiest first. @param most how many at most */
  [[nodiscard]] virtual std::vector<block_traffic> busiest(std::size_t most) = 0;
};

}  // namespace rmm_uvm

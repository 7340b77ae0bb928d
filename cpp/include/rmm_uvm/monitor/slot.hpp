// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/device_memory_reader.hpp>
#include <rmm_uvm/driver/memory_levels.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/monitor/running_total.hpp>
#include <rmm_uvm/monitor/sample.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

namespace rmm_uvm::monitor {

/** @brief What to watch of one device. */
struct slot_settings {
  int device_id{0};                              ///< CUDA ordinal that the samples carry
  std::shared_ptr<uvm_driver> driver;            ///< null: device memory is all that can be known
  std::shared_ptr<device_memory_reader> memory;  ///< null: the driver is asked
  std::size_t capacity_bytes{0};                 ///< managed capacity; 0: the whole device
  double full_fraction{0.02};                    ///< less free than this part of it: full
  bool faults{false};                            ///< count faults too, which costs
};

/**
 * @brief One watched device: asks every source, and makes one sample of the answers.
 *
 * A source that does not answer leaves its last values standing and its bit of `sample::known` 0.
 * `take` by one thread at a time; everything else from any thread.
 */
class slot {
 public:
  /** @param settings kept; what they point to lives as long as the slot */
  explicit slot(slot_settings settings);

  /** @brief CUDA ordinal. */
  [[nodiscard]] int device_id() const noexcept { return settings_.device_id; }

  /**
   * @brief Replaces the resource whose levels are told; null for none.
   *
   * Its totals count from this moment, and nothing of its memory has left the device yet: what left
   * before was the other's. The one before is let go by the calling thread.
   */
  void set_levels(std::shared_ptr<memory_level_source> source) noexcept;

  /**
   * @brief Levels that somebody else found out, of a resource that is not ours; nullopt: unknown.
   *
   * A resource of ours goes first.
   */
  void set_external(std::optional<std::uint64_t> footprint_bytes,
                    std::optional<std::uint64_t> managed_bytes) noexcept;

  /** @brief Asks for faults if the settings say so. @return whether faults are counted, or why not
   */
  availability request_faults();
  /** @brief Takes that request back, if it was granted; idempotent. */
  void release_faults() noexcept;

  /**
   * @brief The sample of this moment.
   *
   * Evicted bytes are what went to the host and was not asked for, while less than `full_fraction`
   * of the device was free at the beginning or the end of the interval. A prefetch to the host may
   * be asked for in one interval and move in later ones: it is counted against them, until one
   * passes in which nothing moves.
   *
   * Prefetched bytes are what was asked for, and no more than came to the device in this interval,
   * or of the last one's in this. Discarded bytes are what was asked for, and no more than lay on
   * the host, so that it would have been copied. Without counters both are what was asked for.
   *
   * Resident bytes are the driver's own where it can tell, and else managed bytes less what left
   * and did not come back: to the host, less from the host, less what was discarded and so came
   * back without a copy; never below 0 nor above what the device has in use or can hold.
   *
   * @param time_ns since the sampler began
   */
  [[nodiscard]] sample take(std::uint64_t time_ns) noexcept;

 private:
  static constexpr auto unknown = std::numeric_limits<std::uint64_t>::max();

  struct moved {  // in the interval that ends with this sample
    std::uint64_t to_device_bytes{0};
    std::uint64_t to_host_bytes{0};
    std::uint64_t own_to_host_bytes{0};
    std::uint64_t prefetched_bytes{0};  // asked for
    std::uint64_t discarded_bytes{0};   // asked for
    bool levels_changed{false};         // another resource's levels are told from here on
  };

  [[nodiscard]] bool counting() const noexcept;
  void read_counters(sample& now, moved& interval) noexcept;
  void read_levels(sample& now, moved& interval) noexcept;
  void read_device(sample& now) noexcept;
  void estimate_evicted(sample& now, moved const& interval) noexcept;
  void bound_asked(sample& now, moved const& interval) noexcept;
  void find_resident(sample& now) noexcept;

  slot_settings settings_;
  std::atomic<bool> faults_granted_{false};
  std::atomic<std::uint64_t> external_footprint_bytes_{unknown};
  std::atomic<std::uint64_t> external_managed_bytes_{unknown};

  ranked_mutex<lock_rank::slot_levels> levels_mutex_;  // guards the next four; held for a few loads
  std::shared_ptr<memory_level_source> levels_;
  running_total prefetched_bytes_;
  running_total discarded_bytes_;
  running_total waited_ns_;
  bool levels_changed_{false};  // since the last sample

  running_total to_device_bytes_;
  running_total to_host_bytes_;
  running_total own_to_host_bytes_;
  running_total cpu_faults_;
  running_total gpu_faults_;
  std::uint64_t own_pending_bytes_{0};      // asked to go to the host, and not seen going
  std::uint64_t late_prefetched_bytes_{0};  // asked for since the sample before, and not seen
                                            // coming
  std::uint64_t away_bytes_{0};  // of these levels: left the device and did not come back
  std::uint64_t device_total_bytes_{0};
  bool managed_known_{false};
  bool was_full_{false};
  sample last_{};
};

}  // namespace rmm_uvm::monitor

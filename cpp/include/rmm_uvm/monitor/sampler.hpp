// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/memory_levels.hpp>
#include <rmm_uvm/monitor/clock.hpp>
#include <rmm_uvm/monitor/sample.hpp>
#include <rmm_uvm/monitor/sample_ring.hpp>
#include <rmm_uvm/monitor/slot.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace rmm_uvm::monitor {

/** @brief How often to sample, and how much to keep. */
struct sampler_settings {
  std::uint64_t interval_ns{100'000'000};  ///< between two samples, > 0
  std::size_t capacity{86'400};            ///< samples kept, of all devices together, > 0
  std::chrono::nanoseconds patience{std::chrono::seconds{1}};  ///< with a device that hangs
};

/**
 * @brief Samples all watched devices, ten times a second by default, on one thread of its own.
 *
 * The thread takes no signals and never runs Python. A deadline that was missed is skipped, not
 * made up for. A device that hangs can hold up the thread, never its callers: they wait for a
 * sample as long as their patience lasts, five times that for the end, and then leave the thread
 * alone.
 *
 * Thread-safe. In a process forked from this one the thread does not exist: nothing is sampled
 * there, `stop` and the destructor do nothing, and `read` gives what was there. A fork waits until
 * the sample under way has ended, as long as the patience lasts; of a device that hangs the child
 * may find locks taken, and `read` gives nothing.
 */
class sampler {
 public:
  /**
   * @param slots what to watch, one a device
   * @param settings interval and capacity
   * @param time null for the machine's clock
   * @throws std::invalid_argument when the interval or the capacity is 0
   * @throws std::bad_alloc when there is no memory for `capacity` samples
   */
  explicit sampler(std::vector<slot_settings> slots,
                   sampler_settings settings   = {},
                   std::shared_ptr<clock> time = nullptr);
  ~sampler();
  sampler(sampler const&)            = delete;
  sampler& operator=(sampler const&) = delete;
  sampler(sampler&&)                 = delete;
  sampler& operator=(sampler&&)      = delete;

  /**
   * @brief Takes the first sample on this thread, and starts the sampler's; idempotent.
   *
   * Totals begin at 0 with the first sample ever; after a stop they go on.
   * @throws std::system_error when there can be no more threads
   * @throws std::logic_error in a process forked from the one that made the sampler
   */
  void start();
  /** @brief Stops the thread and waits for its end; idempotent. What was sampled stays. */
  void stop() noexcept;
  /** @brief Whether the thread runs, in this process. */
  [[nodiscard]] bool running() const noexcept;

  /** @brief Takes a sample now, on this thread. @return false when it could not, see the class */
  bool sample_now() noexcept;

  /** @brief See `slot::set_levels`. @return false when `device_id` is not watched */
  bool set_levels(int device_id, std::shared_ptr<memory_level_source> source) noexcept;
  /** @brief See `slot::set_external`. @return false when `device_id` is not watched */
  bool set_external(int device_id,
                    std::optional<std::uint64_t> footprint_bytes,
                    std::optional<std::uint64_t> managed_bytes) noexcept;
  /** @brief Whether faults are counted on a device since the start, and if not, why. */
  [[nodiscard]] availability faults(int device_id) const;

  /** @brief Number of samples from `since` on; 0 in a forked process that cannot know. */
  [[nodiscard]] std::size_t count(std::uint64_t since) const noexcept;
  /** @brief Copies samples, see `sample_ring::read`. */
  [[nodiscard]] ring_read read(std::uint64_t since, std::span<sample> into) const noexcept;
  /** @brief Sequence number that the next sample will have. */
  [[nodiscard]] std::uint64_t next_sequence() const noexcept;

  /**
   * @brief Waits for sample number `sequence`, the end of the thread, or `timeout` of real time.
   * @return whether that sample was taken
   */
  [[nodiscard]] bool wait(std::uint64_t sequence, std::chrono::nanoseconds timeout) const noexcept;

  /** @brief Processor time that the thread took so far, as of its last sample. */
  [[nodiscard]] std::uint64_t cost_ns() const noexcept;

 private:
  // NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): final, and held as itself
  class core;
  std::shared_ptr<core> core_;
};

}  // namespace rmm_uvm::monitor

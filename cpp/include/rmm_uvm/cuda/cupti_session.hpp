// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cuda_api.hpp>
#include <rmm_uvm/cuda/cupti_api.hpp>
#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/migration_tally.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {

/**
 * @brief CUPTI's unified-memory counters, switched on while anybody listens.
 *
 * CUPTI serves one client of a process at a time. So that two monitors, or one of two GPUs, do not
 * shut each other out, all of them listen to one session (`open_cupti_events`): the first to join
 * switches CUPTI on, the last to leave switches it off. Other profilers are refused meanwhile, as
 * we are while one of them runs.
 *
 * Memory is bounded: CUPTI gets at most 64 buffers of 1 MiB, and counts what it drops beyond.
 * Thread-safe. In a child of a fork nothing happens any more: CUPTI's threads are not there.
 */
class cupti_session {
 public:
  /** @brief Tells the time in nanoseconds; injected, so that tests need not wait. */
  using time_source = std::uint64_t (*)();

  cupti_session(cuda_api const& cuda, cupti_api const& cupti, time_source now) noexcept
    : cuda_{cuda}, cupti_{cupti}, now_{now}
  {
  }
  /** @brief Switches CUPTI off if it is on. */
  ~cupti_session();
  cupti_session(cupti_session const&)            = delete;
  cupti_session& operator=(cupti_session const&) = delete;
  cupti_session(cupti_session&&)                 = delete;
  cupti_session& operator=(cupti_session&&)      = delete;

  /**
   * @brief Enters what moves on these devices from now on into `tally`, until `leave`.
   *
   * What moved shortly before another listener's CUPTI told of it may still be entered.
   * @param device_ids CUDA ordinals; the primary contexts of these devices are retained
   */
  [[nodiscard]] availability join(migration_tally& tally, std::vector<int> const& device_ids);

  /**
   * @brief Lets go of a tally once everything that moved has been entered; idempotent.
   *
   * Takes 0.03 s on an H200; up to 2 s while other clients keep CUPTI's thread asleep.
   */
  void leave(migration_tally& tally) noexcept;

  /**
   * @brief Asks CUPTI for the records that are complete; waits for no GPU work.
   *
   * Does nothing within a second of the last time, or while somebody joins or leaves.
   */
  void flush() noexcept;

 private:
  struct listener {
    migration_tally* tally;
    std::vector<std::uint32_t> devices;  // in CUPTI's numbering; empty: all
  };
  struct found_devices {
    std::vector<std::uint32_t> ids;   // in CUPTI's numbering; empty: all
    std::vector<CUcontext> contexts;  // retained primary contexts
  };

  [[nodiscard]] availability find_devices(std::vector<int> const& device_ids,
                                          found_devices& found) const;
  [[nodiscard]] availability switch_on(CUcontext context);
  void wake(CUcontext context) noexcept;
  void switch_off() noexcept;
  [[nodiscard]] std::string holder() const noexcept;
  [[nodiscard]] bool forked() const noexcept;
  void flush_records(std::uint32_t flag) noexcept;
  void take(std::uint8_t* buffer, std::size_t bytes) noexcept;

  static void buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records);
  static void buffer_completed(CUcontext context,
                               std::uint32_t stream,
                               std::uint8_t* buffer,
                               std::size_t bytes,
                               std::size_t valid_bytes);

  cuda_api cuda_;
  cupti_api cupti_;
  time_source now_;
  ranked_mutex<lock_rank::event_session>
    control_mutex_;  // of joining, leaving and flushing; taken before the one of records
  CUpti_SubscriberHandle subscriber_{nullptr};
  bool on_{false};
  std::atomic<pid_t> process_{0};  // that switched CUPTI on
  std::uint64_t flushed_ns_{0};
  std::vector<listener> listeners_;  // guarded by the mutex of records, see the source
};

}  // namespace rmm_uvm::cuda

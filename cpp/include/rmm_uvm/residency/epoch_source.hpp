// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rmm_uvm {

/** @brief Number of an epoch: a time in which nothing was seen to leave the device. */
using epoch_number = std::uint64_t;

/**
 * @brief Tells when residence stops being certain.
 *
 * "On the device as of epoch e" holds as long as the current epoch is e. An epoch is a hint for
 * speed: it may end late (a copy under way) or for nothing, and no decision that could lose data
 * rests on it. Implementations are thread-safe; `current` is on the path of every allocation.
 */
class epoch_source {
 public:
  epoch_source()                               = default;
  epoch_source(epoch_source const&)            = delete;
  epoch_source& operator=(epoch_source const&) = delete;
  epoch_source(epoch_source&&)                 = delete;
  epoch_source& operator=(epoch_source&&)      = delete;
  virtual ~epoch_source()                      = default;

  /** @brief The epoch now, >= 1; ends the running one first when there is cause. */
  [[nodiscard]] virtual epoch_number current() noexcept = 0;
};

/**
 * @brief Ends an epoch when the device-to-host counter has risen.
 *
 * Any byte that went to the host, evicted or touched by the CPU, makes every block doubtful: the
 * counter has no addresses. Costs two memory loads while nothing moves.
 */
class counted_epochs final : public epoch_source {
 public:
  /** @param counters available; must outlive this object */
  explicit counted_epochs(migration_counters const& counters) noexcept;
  [[nodiscard]] epoch_number current() noexcept override;

 private:
  migration_counters const& counters_;
  std::atomic<std::uint64_t> seen_bytes_;
  std::atomic<epoch_number> epoch_{1};
};

/** @brief Nanoseconds on a monotonic clock; injected so that tests decide the time. */
using clock_function = std::function<std::int64_t()>;

/**
 * @brief Ends an epoch when free device memory was seen to be low: the fallback without counters.
 *
 * The UVM kernel driver evicts only when it finds no free memory, so memory that stayed free means
 * that nothing was evicted. Free memory is asked for at most once a period; a dip between two
 * looks, and pages that the CPU touched, go unseen.
 */
class inferred_epochs final : public epoch_source {
 public:
  /** @brief How often and at what level free memory is looked at. */
  struct settings {
    std::int64_t period_ns{10'000'000};  ///< at most one look in it; a look costs up to 0.1 ms
    std::size_t low_free_bytes{std::size_t{256} << 20U};  ///< two batches (2 x 128 MiB) in which
                                                          ///< the kernel driver takes memory
  };

  /**
   * @param driver asked for free memory; must outlive this object
   * @param clock monotonic
   * @param how period and level
   */
  inferred_epochs(uvm_driver& driver, clock_function clock, settings how);
  [[nodiscard]] epoch_number current() noexcept override;

 private:
  uvm_driver& driver_;
  clock_function clock_;
  settings settings_;
  std::atomic<std::int64_t> next_look_ns_;
  std::atomic<epoch_number> epoch_{1};
};

/** @brief Counted epochs where the driver's counters work, inferred ones elsewhere. */
[[nodiscard]] std::unique_ptr<epoch_source> make_epoch_source(uvm_driver& driver);

}  // namespace rmm_uvm

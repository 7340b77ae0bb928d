// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_events.hpp>
#include <rmm_uvm/driver/migration_tally.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief Why pages of a simulated device move, and which; off until started.
 *
 * A prefetch has the cause `user`, a touch by a kernel or the CPU `coherence`, making room
 * `eviction`. The sums by cause are the device's counters since the start, to the byte. Any number
 * may watch one device. Thread-safe.
 */
class simulated_events final : public migration_events {
 public:
  explicit simulated_events(std::shared_ptr<simulated_device> device) : device_{std::move(device)}
  {
  }
  ~simulated_events() override { device_->counters().detach(tally_); }
  simulated_events(simulated_events const&)            = delete;
  simulated_events& operator=(simulated_events const&) = delete;
  simulated_events(simulated_events&&)                 = delete;
  simulated_events& operator=(simulated_events&&)      = delete;

  [[nodiscard]] availability start() override
  {
    std::lock_guard const lock{mutex_};
    if (started_) { return availability::yes(); }
    if (auto const planned = device_->answers().refusal_met_by("start")) { return *planned; }
    tally_.clear();
    auto result = device_->counters().attach(tally_);
    started_    = result.available;
    return result;
  }
  void stop() noexcept override
  {
    std::lock_guard const lock{mutex_};
    device_->counters().detach(tally_);
    started_ = false;
  }
  [[nodiscard]] cause_totals read() noexcept override { return tally_.totals(); }
  [[nodiscard]] std::vector<block_traffic> busiest(std::size_t most) override
  {
    return tally_.busiest(most);
  }

 private:
  std::shared_ptr<simulated_device> device_;
  migration_tally tally_;
  ranked_mutex<lock_rank::event_switch> mutex_;  // of starting and stopping
  bool started_{false};
};

}  // namespace rmm_uvm::sim

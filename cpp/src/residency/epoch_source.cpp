// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/epoch_source.hpp>

#include <chrono>
#include <utility>

namespace rmm_uvm {

counted_epochs::counted_epochs(migration_counters const& counters) noexcept
  : counters_{counters}, seen_bytes_{counters.read().device_to_host_bytes}
{
}

epoch_number counted_epochs::current() noexcept
{
  auto const now = counters_.read().device_to_host_bytes;
  auto seen      = seen_bytes_.load(std::memory_order_acquire);
  // Only the thread that publishes the new total ends the epoch; a total read earlier is stale.
  while (now > seen) {
    if (seen_bytes_.compare_exchange_weak(seen, now, std::memory_order_acq_rel)) {
      return epoch_.fetch_add(1, std::memory_order_acq_rel) + 1;
    }
  }
  return epoch_.load(std::memory_order_acquire);
}

inferred_epochs::inferred_epochs(uvm_driver& driver, clock_function clock, settings how)
  : driver_{driver},
    clock_{std::move(clock)},
    settings_{how},
    next_look_ns_{clock_() + how.period_ns}
{
}

epoch_number inferred_epochs::current() noexcept
{
  auto const now = clock_();
  auto due       = next_look_ns_.load(std::memory_order_relaxed);
  if (now >= due && next_look_ns_.compare_exchange_strong(due, now + settings_.period_ns)) {
    device_memory memory{};
    // Memory that cannot be read counts as low: doubt costs a prefetch, certainty could cost
    // faults.
    if (!driver_.memory(memory).ok() || memory.free_bytes < settings_.low_free_bytes) {
      return epoch_.fetch_add(1, std::memory_order_acq_rel) + 1;
    }
  }
  return epoch_.load(std::memory_order_acquire);
}

std::unique_ptr<epoch_source> make_epoch_source(uvm_driver& driver)
{
  if (driver.counters().available().available) {
    return std::make_unique<counted_epochs>(driver.counters());
  }
  auto steady = [] {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1};
  };
  return std::make_unique<inferred_epochs>(driver, std::move(steady), inferred_epochs::settings{});
}

}  // namespace rmm_uvm

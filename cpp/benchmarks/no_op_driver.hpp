// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rmm_uvm::benchmarks {

inline constexpr std::size_t device_bytes     = std::size_t{1} << 37U;
inline constexpr std::uintptr_t first_address = std::uintptr_t{1} << 44U;

/** @brief Counters that rise only when the benchmark says that something was evicted. */
class set_counters final : public migration_counters {
 public:
  std::atomic<std::uint64_t> device_to_host_bytes{0};
  [[nodiscard]] availability available() const override { return {}; }
  [[nodiscard]] migration_totals read() const noexcept override
  {
    return {0, device_to_host_bytes.load(std::memory_order_relaxed)};
  }
};

/** @brief A driver that hands out addresses and does nothing else. */
class no_op_driver final : public uvm_driver {
 public:
  no_op_driver() { info_.total_bytes = device_bytes; }

  set_counters counted;

  using range  = memory_range;
  using ranges = std::span<range const>;
  using stream = stream_handle;
  [[nodiscard]] device_info const& info() const noexcept override { return info_; }
  [[nodiscard]] migration_counters const& counters() const noexcept override { return counted; }
  status memory(device_memory& memory) noexcept override
  {
    memory = {device_bytes, device_bytes};
    return {};
  }
  status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept override
  {
    address = next_address_.fetch_add(va_block_ceil(bytes));
    return {};
  }
  status free_managed(std::uintptr_t) noexcept override { return {}; }
  status prefetch(range, location, stream) noexcept override { return {}; }
  status discard(ranges, stream) noexcept override { return {}; }
  status advise(range, memory_advice, location) noexcept override { return {}; }
  status discard_and_prefetch(ranges, location, stream) noexcept override { return {}; }
  status order(stream, stream) noexcept override { return {}; }
  status own_stream(own_stream_use, stream&) noexcept override { return {}; }
  status mark(std::size_t, stream) noexcept override { return {}; }
  [[nodiscard]] bool passed(std::size_t) noexcept override { return true; }
  [[nodiscard]] capture_state capturing(stream) noexcept override { return {}; }
  [[nodiscard]] bool idle(stream) noexcept override { return true; }
  status synchronize(stream) noexcept override { return {}; }

 private:
  device_info info_;
  std::atomic<std::uintptr_t> next_address_{first_address};
};

}  // namespace rmm_uvm::benchmarks

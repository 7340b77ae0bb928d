// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake_system.hpp"

#include <rmm_uvm/cuda/kernel_counters.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>

#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

/** @brief A driver whose prefetches move bytes on the fake kernel driver. */
class moving_driver final : public uvm_driver {
 public:
  explicit moving_driver(std::shared_ptr<fake_system> moved) : system{std::move(moved)}
  {
    facts.uuid = {1};
  }
  static constexpr int address_space = 1;  ///< where its memory is

  std::shared_ptr<fake_system> system;
  device_info facts;
  std::vector<std::size_t> strangers;       ///< bytes that others move during the coming prefetches
  status moves{};                           ///< what `prefetch` answers
  std::size_t allocations{0};               ///< live
  cuda::direct_migration* direct{nullptr};  ///< what `migrate` calls, if there is any
  std::unique_ptr<migration_counters> counted;  ///< what `counters` answers, if there are any

  [[nodiscard]] device_info const& info() const noexcept override { return facts; }
  [[nodiscard]] migration_counters const& counters() const noexcept override
  {
    if (counted) { return *counted; }
    return none_;
  }
  status memory(device_memory&) noexcept override { return {}; }
  status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept override
  {
    address = reinterpret_cast<std::uintptr_t>(std::aligned_alloc(va_block_bytes, bytes));
    ++allocations;
    return {};
  }
  status free_managed(std::uintptr_t address) noexcept override
  {
    std::free(reinterpret_cast<void*>(address));  // NOLINT
    --allocations;
    return {};
  }
  status prefetch(memory_range range, location where, stream_handle) noexcept override
  {
    auto bytes = range.bytes;
    if (!strangers.empty()) {
      bytes += strangers.back();
      strangers.pop_back();
    }
    system->migrate(
      address_space, facts.uuid, where.is_host() ? 0 : bytes, where.is_host() ? bytes : 0);
    system->enter(address_space, {0, 1, from(where), to(where), 0, range.address, bytes, {}});
    system->map_for_cpu(range.address, range.bytes, where.is_host());
    return moves;
  }
  status migrate(memory_range range, location where) noexcept override
  {
    return direct == nullptr ? uvm_driver::migrate(range, where) : direct->migrate(range, where);
  }
  status discard(std::span<memory_range const>, stream_handle) noexcept override { return {}; }
  status discard_and_prefetch(std::span<memory_range const>,
                              location,
                              stream_handle) noexcept override
  {
    return {};
  }
  status advise(memory_range, memory_advice, location) noexcept override { return {}; }
  status order(stream_handle, stream_handle) noexcept override { return {}; }
  status own_stream(own_stream_use, stream_handle&) noexcept override { return {}; }
  status mark(std::size_t, stream_handle) noexcept override { return {}; }
  [[nodiscard]] bool passed(std::size_t) noexcept override { return true; }
  [[nodiscard]] capture_state capturing(stream_handle) noexcept override { return {}; }
  [[nodiscard]] bool idle(stream_handle) noexcept override { return true; }
  status synchronize(stream_handle) noexcept override { return {}; }

 private:
  [[nodiscard]] static std::uint8_t from(location where) noexcept
  {
    return where.is_host() ? 1 : 0;
  }
  [[nodiscard]] static std::uint8_t to(location where) noexcept { return where.is_host() ? 0 : 1; }

  cuda::no_counters none_{"not needed"};
};

/** @brief A machine where this process uses CUDA: one descriptor bound, one not. */
struct counters_machine {
  static constexpr int space = moving_driver::address_space;
  static constexpr fake_system::uuid gpu{1};

  std::shared_ptr<fake_system> system{std::make_shared<fake_system>()};
  moving_driver driver{system};

  counters_machine()
  {
    system->open_uvm(fake_system::own_pid, 5, -1);
    system->open_uvm(fake_system::own_pid, 6, space);
  }
  /** @brief Opens the kernel counters of this process. */
  [[nodiscard]] std::unique_ptr<migration_counters> open()
  {
    return cuda::open_kernel_counters(driver, system);
  }
};

}  // namespace rmm_uvm::tests

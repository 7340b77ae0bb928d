// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/device_memory_reader.hpp>
#include <rmm_uvm/driver/memory_levels.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

namespace rmm_uvm::tests {

/** @brief A resource whose levels the test sets. */
class fake_levels final : public memory_level_source {
 public:
  std::atomic<std::uint64_t> footprint_bytes{0};   ///< what `levels` answers
  std::atomic<std::uint64_t> managed_bytes{0};     ///< what `levels` answers
  std::atomic<std::uint64_t> prefetched_bytes{0};  ///< what `levels` answers
  std::atomic<std::uint64_t> discarded_bytes{0};   ///< what `levels` answers
  std::atomic<std::uint64_t> waited_ns{0};         ///< what `levels` answers

  [[nodiscard]] memory_levels levels() const noexcept override
  {
    return {footprint_bytes, managed_bytes, prefetched_bytes, discarded_bytes, waited_ns};
  }
};

/** @brief Device memory that the test sets. */
class fake_memory_reader final : public device_memory_reader {
 public:
  std::atomic<std::size_t> free_bytes{0};   ///< what `read` answers
  std::atomic<std::size_t> total_bytes{0};  ///< what `read` answers
  std::atomic<bool> works{true};            ///< false: it cannot tell
  std::atomic<bool> hangs{false};           ///< true: does not come back until false again ...
  std::thread::id const maker{std::this_thread::get_id()};  ///< ... but to this thread

  [[nodiscard]] bool read(device_memory& memory) noexcept override
  {
    if (std::this_thread::get_id() != maker) { hangs.wait(true); }
    if (!works) { return false; }
    memory = {free_bytes, total_bytes};
    return true;
  }
};

}  // namespace rmm_uvm::tests

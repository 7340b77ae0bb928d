// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "recording_driver.hpp"

#include <rmm_uvm/driver/uvm_driver.hpp>

namespace rmm_uvm::tests {

/** @brief A driver that moves and remembers nothing, and takes no memory: every call succeeds. */
class silent_driver final : public uvm_driver {
 public:
  device_info facts{};             ///< what `info` answers
  fake_counters counted;           ///< what `counters` answers
  device_memory level{};           ///< what `memory` answers
  device_memory neighbor_level{};  ///< what `neighbor_memory` answers

  silent_driver()
  {
    facts.total_bytes      = std::size_t{1} << 30U;
    facts.direct_migration = availability::yes();
    level                  = {facts.total_bytes, facts.total_bytes};
    neighbor_level         = level;
  }
  [[nodiscard]] device_info const& info() const noexcept override { return facts; }
  [[nodiscard]] migration_counters const& counters() const noexcept override { return counted; }
  status memory(device_memory& memory) noexcept override
  {
    memory = level;
    return {};
  }
  status neighbor_memory(int, device_memory& memory) noexcept override
  {
    memory = neighbor_level;
    return {};
  }
  status allocate_managed(std::size_t, std::uintptr_t&) noexcept override { return {}; }
  status free_managed(std::uintptr_t) noexcept override { return {}; }
  status prefetch(memory_range, location, stream_handle) noexcept override { return {}; }
  status migrate(memory_range, location) noexcept override { return {}; }
  [[nodiscard]] bool migrates_to(location) noexcept override { return true; }
  status discard(std::span<memory_range const>, stream_handle) noexcept override { return {}; }
  status discard_and_prefetch(std::span<memory_range const>,
                              location,
                              stream_handle) noexcept override
  {
    return {};
  }
  status advise(memory_range, memory_advice, location) noexcept override { return {}; }
  status order(stream_handle, stream_handle) noexcept override { return {}; }
  status own_stream(own_stream_use, stream_handle& stream) noexcept override
  {
    stream = nullptr;
    return {};
  }
  status mark(std::size_t, stream_handle) noexcept override { return {}; }
  [[nodiscard]] bool passed(std::size_t) noexcept override { return true; }
  [[nodiscard]] capture_state capturing(stream_handle) noexcept override
  {
    return capture_state::none;
  }
  [[nodiscard]] bool idle(stream_handle) noexcept override { return true; }
  status synchronize(stream_handle) noexcept override { return {}; }
};

}  // namespace rmm_uvm::tests

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rmm_uvm::tests {

[[nodiscard]] inline sim::simulated_device_config capacity_of(std::size_t count)
{
  sim::simulated_device_config config;
  config.capacity_bytes = blocks(count);
  return config;
}

[[nodiscard]] inline memory_range take(sim::simulated_device& device, std::size_t bytes)
{
  memory_range range{0, bytes};
  EXPECT_TRUE(device.allocate_managed(bytes, range.address).ok());
  return range;
}

/** @brief Every call of the seam once, on `range`, by name. */
[[nodiscard]] inline status make_call(sim::simulated_device& device,
                                      std::string_view call,
                                      memory_range range)
{
  device_memory memory{};
  std::uintptr_t address = 0;
  std::span const one{&range, 1};
  if (call == "memory") { return device.memory(memory); }
  if (call == "allocate_managed") { return device.allocate_managed(4096, address); }
  if (call == "allocate_device") { return device.program().allocate_device(4096, address); }
  if (call == "prefetch") { return device.prefetch(range, location::device(0), nullptr); }
  if (call == "discard") { return device.discard(one, nullptr); }
  if (call == "discard_and_prefetch") {
    return device.discard_and_prefetch(one, location::device(0), nullptr);
  }
  if (call == "touch") { return device.program().touch(range, true); }
  if (call == "cpu_touch") { return device.program().cpu_touch(range, true); }
  if (call == "synchronize") { return device.synchronize(nullptr); }
  if (call == "free_managed") { return device.free_managed(range.address); }
  return {status_code::invalid_value, 0, "no such call"};
}

}  // namespace rmm_uvm::tests

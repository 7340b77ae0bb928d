// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;

TEST(ConcurrentSimulatedDevice, BooksBalanceAfterThreadsThatEvictEachOther)
{
  simulated_device_config config;
  config.capacity_bytes = blocks(16);
  simulated_device device{config};
  std::atomic<int> failures{0};
  tests::on_threads(6, [&](std::size_t index) {
    for (int round = 0; round < 40; ++round) {
      memory_range range{0, blocks(1 + index)};
      failures += device.allocate_managed(range.bytes, range.address).ok() ? 0 : 1;
      failures += device.touch(range, true).ok() ? 0 : 1;
      failures += device.prefetch(range, location::host(), nullptr).ok() ? 0 : 1;
      failures += device.prefetch(range, location::device(0), nullptr).ok() ? 0 : 1;
      static_cast<void>(device.read());
      static_cast<void>(device.statistics());
      failures += device.free_managed(range.address).ok() ? 0 : 1;
    }
  });
  EXPECT_EQ(failures, 0);
  auto const after = device.statistics();
  EXPECT_EQ(after.managed_bytes, 0U);
  EXPECT_EQ(after.resident_bytes, 0U);
  EXPECT_EQ(after.host_page_bytes, 0U);
  EXPECT_LE(after.peak_resident_bytes, blocks(16));
  EXPECT_EQ(after.device_to_host_bytes, device.read().device_to_host_bytes);
}

}  // namespace
}  // namespace rmm_uvm::sim

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/sim/simulated_events.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;

TEST(ConcurrentSimulatedEvents, SumsAreTheCountersWhileOthersComeAndGo)
{
  simulated_device_config config;
  config.capacity_bytes = blocks(8);
  auto const device     = std::make_shared<simulated_device>(config);
  simulated_events events{device};
  ASSERT_TRUE(events.start().available);
  tests::on_threads(4, [&](std::size_t index) {
    memory_range range{0, blocks(3)};
    EXPECT_TRUE(device->allocate_managed(range.bytes, range.address).ok());
    for (int round = 0; round < 40; ++round) {
      simulated_events other{device};
      EXPECT_TRUE(other.start().available);
      EXPECT_TRUE(device->program().touch(range, true).ok());
      EXPECT_TRUE(device->prefetch(range, location::host(), nullptr).ok());
      static_cast<void>(events.read());
      EXPECT_LE(other.busiest(index + 1).size(), index + 1);
      other.stop();
    }
  });
  auto const totals = events.read();
  auto const moved  = device->counters().read();
  EXPECT_EQ(
    std::accumulate(
      totals.device_to_host_bytes.begin(), totals.device_to_host_bytes.end(), std::uint64_t{0}),
    moved.device_to_host_bytes);
  EXPECT_EQ(
    std::accumulate(
      totals.host_to_device_bytes.begin(), totals.host_to_device_bytes.end(), std::uint64_t{0}),
    moved.host_to_device_bytes);
}

}  // namespace
}  // namespace rmm_uvm::sim

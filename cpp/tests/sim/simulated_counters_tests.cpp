// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"
#include "../support/simulated_calls.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;
using tests::capacity_of;
using tests::take;

TEST(SimulatedCounters, ReadOnlyTheAccountOfTheirProgram)
{
  planned_answers answers;
  node_gpu const gpu{std::make_shared<simulated_node>(simulated_node_config{}), 1, 1};
  simulated_counters const counters{gpu, answers, true, availability::yes()};
  gpu.account().host_to_device_bytes    = 5;
  gpu.account().cpu_faults              = 3;
  gpu.node().of(0).device_to_host_bytes = 7;
  EXPECT_EQ(counters.read().host_to_device_bytes, 5U);
  EXPECT_EQ(counters.read().device_to_host_bytes, 0U);
  EXPECT_EQ(counters.read().cpu_faults, 3U);
}

TEST(SimulatedCounters, CountFaultsWhileARequestStands)
{
  planned_answers answers;
  node_gpu const gpu{std::make_shared<simulated_node>(simulated_node_config{}), 0, 0};
  simulated_counters const counters{gpu, answers, true, availability::yes()};
  answers.plan("request_faults", failed(status_code::driver_error, "request_faults"), 0);
  EXPECT_FALSE(counters.request_faults().available);
  EXPECT_EQ(gpu.account().fault_requests, 0);
  EXPECT_TRUE(counters.request_faults().available);
  EXPECT_EQ(gpu.account().fault_requests, 1);
  counters.release_faults();
  EXPECT_EQ(gpu.account().fault_requests, 0);
  simulated_counters const none{gpu, answers, false, availability::yes()};
  EXPECT_FALSE(none.request_faults().available);
  EXPECT_EQ(gpu.account().fault_requests, 0);
}

TEST(SimulatedCounters, AttachATallyOnceAndOnlyIfPagesMigrate)
{
  planned_answers answers;
  node_gpu const gpu{std::make_shared<simulated_node>(simulated_node_config{}), 0, 0};
  migration_tally tally;
  simulated_counters const still{gpu, answers, true, availability::no("nothing migrates")};
  EXPECT_EQ(still.attach(tally).reason, "nothing migrates");
  EXPECT_TRUE(gpu.account().tallies.empty());
  simulated_counters const counters{gpu, answers, true, availability::yes()};
  EXPECT_TRUE(counters.attach(tally).available);
  EXPECT_TRUE(counters.attach(tally).available);
  EXPECT_EQ(gpu.account().tallies.size(), 1U);
  counters.detach(tally);
  counters.detach(tally);
  EXPECT_TRUE(gpu.account().tallies.empty());
}

TEST(SimulatedCounters, ReadZerosIfTheDeviceHasNone)
{
  auto config     = capacity_of(4);
  config.counters = false;
  simulated_device device{config};
  auto const range = take(device, blocks(1));
  ASSERT_TRUE(device.program().touch(range, true).ok());
  ASSERT_TRUE(device.prefetch(range, location::host(), nullptr).ok());
  EXPECT_EQ(device.counters().read().device_to_host_bytes, 0U);
  EXPECT_EQ(device.view().statistics().device_to_host_bytes, blocks(1));
}

TEST(SimulatedCounters, FollowTheStatistics)
{
  simulated_device device{capacity_of(2)};
  auto const range = take(device, blocks(4));
  ASSERT_TRUE(device.program().touch(range, true).ok());
  ASSERT_TRUE(device.program().touch(range, true).ok());
  EXPECT_GT(device.counters().read().host_to_device_bytes, 0U);
  EXPECT_EQ(device.counters().read().host_to_device_bytes,
            device.view().statistics().host_to_device_bytes);
  EXPECT_EQ(device.counters().read().device_to_host_bytes,
            device.view().statistics().device_to_host_bytes);
}

}  // namespace
}  // namespace rmm_uvm::sim

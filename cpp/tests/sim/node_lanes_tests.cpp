// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What goes on a device's own streams on a node goes beside the program; what needs it waits.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace rmm_uvm::sim {
namespace {

using tests::block_range;
using tests::blocks;

class NodeLanes : public testing::Test {
 protected:
  static constexpr std::size_t count = 32;  ///< blocks

  void SetUp() override { make({}); }
  void make(simulated_node_config config)
  {
    config.capacity_bytes = blocks(4 * count);
    auto const node       = std::make_shared<simulated_node>(config);
    device                = std::make_unique<simulated_device>(node, 0, simulated_device_config{});
    first                 = on_host();
    second                = on_host();
    begun                 = now();
  }
  [[nodiscard]] memory_range on_host()
  {
    memory_range range{0, blocks(count)};
    EXPECT_TRUE(device->allocate_managed(range.bytes, range.address).ok());
    EXPECT_TRUE(device->program().cpu_touch(range, true).ok());
    return range;
  }
  [[nodiscard]] stream_handle own(own_stream_use which)
  {
    stream_handle stream = nullptr;
    EXPECT_TRUE(device->own_stream(which, stream).ok());
    return stream;
  }
  void move(memory_range range, location where, stream_handle stream)
  {
    EXPECT_TRUE(device->prefetch(range, where, stream).ok());
  }
  [[nodiscard]] double now() const
  {
    return static_cast<double>(device->view().statistics().modelled_ns);
  }
  [[nodiscard]] double passed_ns() const { return now() - begun; }
  /** @brief How long both ranges take to come, on these streams. */
  [[nodiscard]] double arrival_of_both(stream_handle stream, stream_handle other)
  {
    auto const before = now();
    move(first, here, stream);
    move(second, here, other);
    EXPECT_TRUE(device->synchronize(stream).ok());
    EXPECT_TRUE(device->synchronize(other).ok());
    return now() - before;
  }

  static constexpr location here = location::device(0);
  std::unique_ptr<simulated_device> device;
  memory_range first;
  memory_range second;
  double begun{0};
};

TEST_F(NodeLanes, ArrivalsComeWhileKernelsCompute)
{
  move(first, here, own(own_stream_use::arrivals));
  EXPECT_EQ(passed_ns(), 0);
  ASSERT_TRUE(device->program().compute(20e6).ok());
  ASSERT_TRUE(device->program().touch(first, false).ok());
  EXPECT_LT(passed_ns(), 20.2e6);
}

TEST_F(NodeLanes, WhoUsesWhatIsComingWaitsForIt)
{
  auto const least = static_cast<double>(blocks(count)) / machine_profile{}.to_device_bytes_per_ns;
  move(first, here, own(own_stream_use::arrivals));
  ASSERT_TRUE(device->program().touch(block_range(first.address, count - 1, 1), false).ok());
  EXPECT_GT(passed_ns(), least);
}

TEST_F(NodeLanes, WaitingForAnOwnStreamTakesItsTime)
{
  move(first, here, own(own_stream_use::arrivals));
  ASSERT_TRUE(device->order(nullptr, own(own_stream_use::evictions)).ok());
  EXPECT_EQ(passed_ns(), 0);  // nothing is there to wait for
  ASSERT_TRUE(device->order(nullptr, own(own_stream_use::arrivals)).ok());
  auto const arrived = passed_ns();
  EXPECT_GT(arrived, 0);
  ASSERT_TRUE(device->synchronize(own(own_stream_use::arrivals)).ok());
  EXPECT_EQ(passed_ns(), arrived);
}

TEST_F(NodeLanes, WhatComesWaitsForWhatLeft)
{
  move(second, here, nullptr);
  begun = now();
  move(second, location::host(), own(own_stream_use::evictions));
  EXPECT_EQ(passed_ns(), 0);
  move(block_range(first.address, 0, 1), here, nullptr);
  auto const least = static_cast<double>(blocks(count)) / machine_profile{}.to_host_bytes_per_ns;
  EXPECT_GT(passed_ns(), least);
}

TEST_F(NodeLanes, HostAndNeighbourBringTheirPartsAtTheSameTime)
{
  auto const from_both = [this](bool beside) {
    make({});
    move(second, location::device(1), nullptr);
    auto const one = own(own_stream_use::arrivals);
    return arrival_of_both(one, beside ? own(own_stream_use::evictions) : one);
  };
  EXPECT_LT(from_both(true), 0.95 * from_both(false));
}

TEST_F(NodeLanes, OneLinkBringsNoMoreInTwoLanes)
{
  auto const one_lane =
    arrival_of_both(own(own_stream_use::arrivals), own(own_stream_use::arrivals));
  make({});
  auto const two_lanes =
    arrival_of_both(own(own_stream_use::arrivals), own(own_stream_use::evictions));
  auto const least =
    static_cast<double>(blocks(2 * count)) / machine_profile{}.to_device_bytes_per_ns;
  EXPECT_GT(two_lanes, least);
  EXPECT_LE(two_lanes, one_lane);
}

TEST_F(NodeLanes, WithoutThemOneOperationFollowsTheOther)
{
  simulated_node_config config;
  config.beside = false;
  make(config);
  move(first, here, own(own_stream_use::arrivals));
  EXPECT_GT(passed_ns(), 0);
}

}  // namespace
}  // namespace rmm_uvm::sim

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

TEST(SimulatedView, ShowsThePagesAndAllocationsOfItsProgram)
{
  node_gpu const gpu{std::make_shared<simulated_node>(simulated_node_config{}), 1, 1};
  simulated_allocations allocations{gpu, false};
  simulated_view const view{gpu, allocations};
  EXPECT_EQ(view.gpu(), 1U);
  EXPECT_FALSE(view.backing());
  memory_range range{0, blocks(2)};
  ASSERT_TRUE(allocations.allocate_managed(gpu.enter(), range.bytes, range.address).ok());
  ASSERT_TRUE(gpu.enter()->prefetch(range, 0, 0).ok());
  EXPECT_EQ(view.resident_bytes(range), 0U);
  EXPECT_EQ(view.resident_bytes(range, location::device(0)), blocks(2));
  EXPECT_EQ(view.resident_bytes(range, location::device(2)), 0U);
  EXPECT_EQ(view.statistics().managed_bytes, blocks(2));
  EXPECT_EQ(view.statistics().neighbor_bytes, blocks(2));
  ASSERT_TRUE(gpu.enter()->advise(range, advice::preferred_location, 1).ok());
  EXPECT_EQ(view.advised(range.address).preferred, 1);
  auto const kind = view.find_memory(range.address + 1);
  ASSERT_TRUE(kind.has_value());
  EXPECT_TRUE(kind->managed);
  EXPECT_EQ(kind->device_id, 1);
  EXPECT_EQ(view.shared_descriptor(range.address), -1);
}

TEST(SimulatedView, LastBlockOfAnOddRangeTakesOnlyItsPages)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, va_block_bytes + 1);
  ASSERT_TRUE(device.program().touch(range, true).ok());
  EXPECT_EQ(device.view().statistics().resident_bytes, va_block_bytes + page_bytes);
  EXPECT_EQ(device.view().resident_bytes(range), va_block_bytes + 1);
}

TEST(SimulatedView, ResidentBytesOfAPartOfAPage)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(1));
  ASSERT_TRUE(device.program().touch(range, true).ok());
  EXPECT_EQ(device.view().resident_bytes({range.address + 100, 50}), 50U);
  EXPECT_EQ(device.view().resident_bytes({range.address + 4095, 2}), 2U);
  EXPECT_EQ(device.view().resident_bytes({4096, 100}), 0U);
}

}  // namespace
}  // namespace rmm_uvm::sim

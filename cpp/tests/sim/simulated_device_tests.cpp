// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"
#include "../support/simulated_calls.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;
using tests::capacity_of;
using tests::make_call;
using tests::take;

// Absurd lengths

TEST(SimulatedDevice, RangePastTheEndOfTheAddressSpaceIsInvalid)
{
  simulated_device device{capacity_of(4)};
  auto range  = take(device, blocks(2));
  range.bytes = std::numeric_limits<std::size_t>::max();
  for (auto const* const call : {"prefetch", "discard", "discard_and_prefetch", "touch"}) {
    EXPECT_EQ(make_call(device, call, range).code, status_code::invalid_value) << call;
  }
}

TEST(SimulatedDevice, AllocationWhoseRoundingWouldOverflowIsOutOfMemoryAndEvictsNothing)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(2));
  ASSERT_TRUE(device.program().touch(range, true).ok());
  std::uintptr_t address = 0;
  auto const absurd      = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(device.allocate_managed(absurd, address).code, status_code::out_of_memory);
  EXPECT_EQ(device.program().allocate_device(absurd, address).code, status_code::out_of_memory);
  EXPECT_EQ(device.view().resident_bytes(range), blocks(2));
}

// Facts

TEST(SimulatedDevice, SaysThatItIsSimulated)
{
  simulated_device device{capacity_of(4)};
  EXPECT_TRUE(device.info().simulated);
  EXPECT_EQ(device.info().total_bytes, blocks(4));
  EXPECT_TRUE(device.info().discard.available);
}

TEST(SimulatedDevice, MissingFeaturesHaveReasonsAndAreRefused)
{
  auto config                      = capacity_of(4);
  config.concurrent_managed_access = false;
  config.discard                   = false;
  config.counters                  = false;
  simulated_device device{config};
  auto const range = take(device, blocks(1));
  EXPECT_NE(device.info().concurrent_managed_access.reason, "");
  EXPECT_NE(device.info().discard.reason, "");
  EXPECT_NE(device.counters().available().reason, "");
  for (auto const* call : {"prefetch", "discard", "discard_and_prefetch"}) {
    EXPECT_EQ(make_call(device, call, range).code, status_code::not_supported) << call;
  }
}

TEST(SimulatedDevice, IntegratedOneHasOneMemoryInWhichNothingMoves)
{
  auto config             = capacity_of(4);
  config.integrated       = true;
  config.direct_migration = true;
  simulated_device device{config};
  EXPECT_TRUE(device.info().integrated);
  EXPECT_FALSE(device.info().direct_migration.available);
  EXPECT_FALSE(device.info().discard.available);
  auto const range = take(device, blocks(2));
  EXPECT_EQ(make_call(device, "discard", range).code, status_code::not_supported);
  ASSERT_TRUE(device.program().touch(range, true).ok());
  EXPECT_TRUE(device.program().cpu_touch(range, true).ok());
  EXPECT_TRUE(device.prefetch(range, location::host(), nullptr).ok());
  EXPECT_EQ(device.view().resident_bytes(range, location::device(0)), blocks(2));
  EXPECT_EQ(device.view().statistics().device_to_host_bytes, 0U);
  auto const more = take(device, blocks(4));
  EXPECT_EQ(device.program().touch(more, true).code, status_code::out_of_memory);
}

// Managed memory

TEST(SimulatedDevice, ManagedMemoryMayExceedTheDevice)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(100));
  EXPECT_EQ(range.address % va_block_bytes, 0U);
  EXPECT_EQ(device.view().statistics().managed_bytes, blocks(100));
  EXPECT_EQ(device.view().statistics().resident_bytes, 0U);
}

TEST(SimulatedDevice, FreeingGivesTheDeviceMemoryBack)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(4));
  ASSERT_TRUE(device.program().touch(range, true).ok());
  device_memory memory{};
  ASSERT_TRUE(device.memory(memory).ok());
  EXPECT_EQ(memory.free_bytes, 0U);
  ASSERT_TRUE(device.free_managed(range.address).ok());
  ASSERT_TRUE(device.memory(memory).ok());
  EXPECT_EQ(memory.free_bytes, blocks(4));
  EXPECT_EQ(device.view().statistics().managed_bytes, 0U);
}

TEST(SimulatedDevice, BadArgumentsAreRefused)
{
  simulated_device device{capacity_of(4)};
  std::uintptr_t address = 0;
  EXPECT_EQ(device.allocate_managed(0, address).code, status_code::invalid_value);
  EXPECT_EQ(device.program().allocate_device(0, address).code, status_code::invalid_value);
  EXPECT_EQ(device.free_managed(4096).code, status_code::invalid_value);
  EXPECT_EQ(device.program().free_device(4096).code, status_code::invalid_value);
  auto const range = take(device, blocks(1));
  memory_range const too_long{range.address, range.bytes + 1};
  for (auto const* call : {"prefetch", "discard", "discard_and_prefetch", "touch", "cpu_touch"}) {
    EXPECT_EQ(make_call(device, call, too_long).code, status_code::invalid_value) << call;
    EXPECT_EQ(make_call(device, call, {4096, 1}).code, status_code::invalid_value) << call;
    EXPECT_EQ(make_call(device, call, {range.address, 0}).code, status_code::invalid_value) << call;
  }
}

TEST(SimulatedDevice, SecondFreeIsRefused)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(1));
  EXPECT_TRUE(device.free_managed(range.address).ok());
  EXPECT_EQ(device.free_managed(range.address).code, status_code::invalid_value);
}

// Contents

TEST(SimulatedDevice, BackedContentsSurviveMigration)
{
  auto config    = capacity_of(2);
  config.backing = true;
  simulated_device device{config};
  auto const range  = take(device, blocks(4));
  auto* const bytes = reinterpret_cast<unsigned char*>(range.address);
  std::memset(bytes, 0x5A, range.bytes);
  ASSERT_TRUE(device.program().touch(range, true).ok());  // evicts as it goes
  ASSERT_TRUE(device.prefetch(range, location::host(), nullptr).ok());
  for (std::size_t i = 0; i < range.bytes; i += 1'000) {
    ASSERT_EQ(bytes[i], 0x5A) << i;
  }
}

TEST(SimulatedDevice, BackedContentsAreScribbledOverByADiscard)
{
  auto config    = capacity_of(2);
  config.backing = true;
  simulated_device device{config};
  auto const range  = take(device, blocks(1));
  auto* const bytes = reinterpret_cast<unsigned char*>(range.address);
  std::memset(bytes, 0x5A, range.bytes);
  memory_range const middle{range.address + 1, 2 * page_bytes};
  ASSERT_TRUE(device.discard(std::span{&middle, 1}, nullptr).ok());
  EXPECT_EQ(bytes[page_bytes - 1], 0x5A);  // its page is only partly in the range
  EXPECT_NE(bytes[page_bytes], 0x5A);
  EXPECT_EQ(bytes[2 * page_bytes], 0x5A);
}

// Time

TEST(SimulatedDevice, MovesTakeModelledTimeAndHitsNone)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(1));
  ASSERT_TRUE(device.program().touch(range, true).ok());
  auto const after_fault = device.view().statistics().modelled_ns;
  EXPECT_GT(after_fault, 0U);
  ASSERT_TRUE(device.program().touch(range, true).ok());
  EXPECT_EQ(device.view().statistics().modelled_ns, after_fault);
}

}  // namespace
}  // namespace rmm_uvm::sim

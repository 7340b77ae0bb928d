// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace rmm_uvm::sim {
namespace {

using tests::block_range;
using tests::blocks;

[[nodiscard]] simulated_device_config capacity_of(std::size_t count)
{
  simulated_device_config config;
  config.capacity_bytes = blocks(count);
  return config;
}

[[nodiscard]] memory_range take(simulated_device& device, std::size_t bytes)
{
  memory_range range{0, bytes};
  EXPECT_TRUE(device.allocate_managed(bytes, range.address).ok());
  return range;
}

/** @brief Every call of the seam once, on `range`, by name. */
[[nodiscard]] status make_call(simulated_device& device, std::string_view call, memory_range range)
{
  device_memory memory{};
  std::uintptr_t address = 0;
  std::span const one{&range, 1};
  if (call == "memory") { return device.memory(memory); }
  if (call == "allocate_managed") { return device.allocate_managed(4096, address); }
  if (call == "allocate_device") { return device.allocate_device(4096, address); }
  if (call == "prefetch") { return device.prefetch(range, location::device(0), nullptr); }
  if (call == "discard") { return device.discard(one, nullptr); }
  if (call == "discard_and_prefetch") {
    return device.discard_and_prefetch(one, location::device(0), nullptr);
  }
  if (call == "touch") { return device.touch(range, true); }
  if (call == "cpu_touch") { return device.cpu_touch(range, true); }
  if (call == "synchronize") { return device.synchronize(nullptr); }
  if (call == "free_managed") { return device.free_managed(range.address); }
  return {status_code::invalid_value, 0, "no such call"};
}

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
  ASSERT_TRUE(device.touch(range, true).ok());
  std::uintptr_t address = 0;
  auto const absurd      = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(device.allocate_managed(absurd, address).code, status_code::out_of_memory);
  EXPECT_EQ(device.allocate_device(absurd, address).code, status_code::out_of_memory);
  EXPECT_EQ(device.resident_bytes(range), blocks(2));
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
  EXPECT_NE(device.available().reason, "");
  for (auto const* call : {"prefetch", "discard", "discard_and_prefetch"}) {
    EXPECT_EQ(make_call(device, call, range).code, status_code::not_supported) << call;
  }
}

TEST(SimulatedDevice, WithoutCountersReadsZeros)
{
  auto config     = capacity_of(4);
  config.counters = false;
  simulated_device device{config};
  auto const range = take(device, blocks(1));
  ASSERT_TRUE(device.touch(range, true).ok());
  ASSERT_TRUE(device.prefetch(range, location::host(), nullptr).ok());
  EXPECT_EQ(device.read().device_to_host_bytes, 0U);
  EXPECT_EQ(device.statistics().device_to_host_bytes, blocks(1));
}

// Managed memory

TEST(SimulatedDevice, ManagedMemoryMayExceedTheDevice)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(100));
  EXPECT_EQ(range.address % va_block_bytes, 0U);
  EXPECT_EQ(device.statistics().managed_bytes, blocks(100));
  EXPECT_EQ(device.statistics().resident_bytes, 0U);
}

TEST(SimulatedDevice, FreeingGivesTheDeviceMemoryBack)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(4));
  ASSERT_TRUE(device.touch(range, true).ok());
  device_memory memory{};
  ASSERT_TRUE(device.memory(memory).ok());
  EXPECT_EQ(memory.free_bytes, 0U);
  ASSERT_TRUE(device.free_managed(range.address).ok());
  ASSERT_TRUE(device.memory(memory).ok());
  EXPECT_EQ(memory.free_bytes, blocks(4));
  EXPECT_EQ(device.statistics().managed_bytes, 0U);
}

TEST(SimulatedDevice, BadArgumentsAreRefused)
{
  simulated_device device{capacity_of(4)};
  std::uintptr_t address = 0;
  EXPECT_EQ(device.allocate_managed(0, address).code, status_code::invalid_value);
  EXPECT_EQ(device.allocate_device(0, address).code, status_code::invalid_value);
  EXPECT_EQ(device.free_managed(4096).code, status_code::invalid_value);
  EXPECT_EQ(device.free_device(4096).code, status_code::invalid_value);
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

TEST(SimulatedDevice, LastBlockOfAnOddRangeTakesOnlyItsPages)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, va_block_bytes + 1);
  ASSERT_TRUE(device.touch(range, true).ok());
  EXPECT_EQ(device.statistics().resident_bytes, va_block_bytes + page_bytes);
  EXPECT_EQ(device.resident_bytes(range), va_block_bytes + 1);
}

TEST(SimulatedDevice, ResidentBytesOfAPartOfAPage)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(1));
  ASSERT_TRUE(device.touch(range, true).ok());
  EXPECT_EQ(device.resident_bytes({range.address + 100, 50}), 50U);
  EXPECT_EQ(device.resident_bytes({range.address + 4095, 2}), 2U);
  EXPECT_EQ(device.resident_bytes({4096, 100}), 0U);
}

// cudaMalloc memory

TEST(SimulatedDevice, DeviceMemoryEvictsManagedMemory)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(4));
  ASSERT_TRUE(device.touch(range, true).ok());
  std::uintptr_t address = 0;
  ASSERT_TRUE(device.allocate_device(blocks(3), address).ok());
  EXPECT_EQ(device.statistics().evicted_bytes, blocks(3));
  EXPECT_EQ(device.resident_bytes(range), blocks(1));
}

TEST(SimulatedDevice, DeviceMemoryIsNeverEvicted)
{
  simulated_device device{capacity_of(4)};
  std::uintptr_t address = 0;
  ASSERT_TRUE(device.allocate_device(blocks(4), address).ok());
  auto const range = take(device, blocks(1));
  EXPECT_EQ(device.touch(range, true).code, status_code::out_of_memory);
  std::uintptr_t more = 0;
  EXPECT_EQ(device.allocate_device(1, more).code, status_code::out_of_memory);
  ASSERT_TRUE(device.free_device(address).ok());
  EXPECT_TRUE(device.touch(range, true).ok());
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
  ASSERT_TRUE(device.touch(range, true).ok());  // evicts as it goes
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

// Time, counters, capture

TEST(SimulatedDevice, MovesTakeModelledTimeAndHitsNone)
{
  simulated_device device{capacity_of(4)};
  auto const range = take(device, blocks(1));
  ASSERT_TRUE(device.touch(range, true).ok());
  auto const after_fault = device.statistics().modelled_ns;
  EXPECT_GT(after_fault, 0U);
  ASSERT_TRUE(device.touch(range, true).ok());
  EXPECT_EQ(device.statistics().modelled_ns, after_fault);
}

TEST(SimulatedDevice, CountersFollowTheStatistics)
{
  simulated_device device{capacity_of(2)};
  auto const range = take(device, blocks(4));
  ASSERT_TRUE(device.touch(range, true).ok());
  ASSERT_TRUE(device.touch(range, true).ok());
  EXPECT_GT(device.read().host_to_device_bytes, 0U);
  EXPECT_EQ(device.read().host_to_device_bytes, device.statistics().host_to_device_bytes);
  EXPECT_EQ(device.read().device_to_host_bytes, device.statistics().device_to_host_bytes);
}

TEST(SimulatedDevice, CaptureStateIsPerStream)
{
  simulated_device device{capacity_of(2)};
  auto* const other = reinterpret_cast<stream_handle>(std::uintptr_t{7});
  device.set_capture_state(other, capture_state::capturing);
  EXPECT_EQ(device.capturing(other), capture_state::capturing);
  EXPECT_EQ(device.capturing(nullptr), capture_state::none);
}

// Planned failures

class PlannedFailure : public testing::TestWithParam<char const*> {};

TEST_P(PlannedFailure, AnswersOnceAndChangesNothing)
{
  simulated_device device{capacity_of(4)};
  auto const range  = take(device, blocks(1));
  auto const before = device.statistics();
  device.fail_call(GetParam(), {status_code::driver_error, 42, "planned"}, 0);
  EXPECT_EQ(make_call(device, GetParam(), range).native_error, 42);
  auto const after = device.statistics();
  EXPECT_EQ(after.managed_bytes, before.managed_bytes);
  EXPECT_EQ(after.device_bytes, before.device_bytes);
  EXPECT_EQ(after.resident_bytes, before.resident_bytes);
  EXPECT_EQ(after.modelled_ns, before.modelled_ns);
  EXPECT_TRUE(make_call(device, GetParam(), range).ok());
}

TEST_P(PlannedFailure, SkipsAsManyCallsAsAsked)
{
  simulated_device device{capacity_of(4)};
  std::array const ranges{
    take(device, blocks(1)), take(device, blocks(1)), take(device, blocks(1))};
  device.fail_call(GetParam(), {status_code::driver_error, 42, "planned"}, 2);
  EXPECT_TRUE(make_call(device, GetParam(), ranges[0]).ok());
  EXPECT_TRUE(make_call(device, GetParam(), ranges[1]).ok());
  EXPECT_FALSE(make_call(device, GetParam(), ranges[2]).ok());
}

TEST_P(PlannedFailure, IsTakenBackUnlessItWasMet)
{
  simulated_device device{capacity_of(4)};
  std::array const ranges{take(device, blocks(1)), take(device, blocks(1))};
  device.fail_call(GetParam(), {status_code::driver_error, 42, "planned"}, 0);
  EXPECT_EQ(make_call(device, GetParam(), ranges[0]).native_error, 42);
  EXPECT_EQ(device.cancel_failures(), 0);
  device.fail_call(GetParam(), {status_code::driver_error, 42, "planned"}, 0);
  EXPECT_EQ(device.cancel_failures(), 1);
  EXPECT_TRUE(make_call(device, GetParam(), ranges[1]).ok());
}

INSTANTIATE_TEST_SUITE_P(Seam,
                         PlannedFailure,
                         testing::Values("memory",
                                         "allocate_managed",
                                         "allocate_device",
                                         "prefetch",
                                         "discard",
                                         "discard_and_prefetch",
                                         "touch",
                                         "cpu_touch",
                                         "synchronize",
                                         "free_managed"),
                         [](auto const& tested) { return std::string{tested.param}; });

}  // namespace
}  // namespace rmm_uvm::sim

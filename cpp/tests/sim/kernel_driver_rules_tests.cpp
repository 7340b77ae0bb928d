// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The simulated device against the policy of the UVM kernel driver (open-gpu-kernel-modules
// 580.142): victim order, two passes, discard, host memory. The figures are worked out from that
// source.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <tuple>

namespace rmm_uvm::sim {
namespace {

using tests::block_range;
using tests::blocks;

/** @brief A device of `capacity` blocks and one managed range of `managed` blocks. */
struct device_with_range {
  device_with_range(std::size_t capacity, std::size_t managed, simulated_device_config config = {})
    : device{with_capacity(config, capacity)}, range{0, blocks(managed)}
  {
    EXPECT_TRUE(device.allocate_managed(range.bytes, range.address).ok());
  }

  [[nodiscard]] memory_range block(std::size_t first, std::size_t count = 1) const
  {
    return block_range(range.address, first, count);
  }
  void touch(std::size_t first, std::size_t count = 1, bool write = true)
  {
    ASSERT_TRUE(device.program().touch(block(first, count), write).ok());
  }
  void prefetch(std::size_t first, std::size_t count = 1, location where = location::device(0))
  {
    ASSERT_TRUE(device.prefetch(block(first, count), where, nullptr).ok());
  }
  void discard(memory_range what)
  {
    ASSERT_TRUE(device.discard(std::span{&what, 1}, nullptr).ok());
  }
  [[nodiscard]] bool resident(std::size_t index) const
  {
    return device.view().resident_bytes(block(index)) == va_block_bytes;
  }
  [[nodiscard]] std::uint64_t to_device() const
  {
    return device.view().statistics().host_to_device_bytes;
  }
  [[nodiscard]] std::uint64_t to_host() const
  {
    return device.view().statistics().device_to_host_bytes;
  }

  [[nodiscard]] static simulated_device_config with_capacity(simulated_device_config config,
                                                             std::size_t capacity)
  {
    config.capacity_bytes = blocks(capacity);
    return config;
  }

  simulated_device device;
  memory_range range;
};

// Victims

TEST(VictimOrder, CyclicScanSlightlyOverCapacityMissesEveryTime)
{
  device_with_range given{100, 105};
  std::size_t misses = 0;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t index = 0; index < 105; ++index) {
      misses += given.resident(index) ? 0 : 1;
      given.touch(index);
    }
  }
  EXPECT_EQ(misses, 1'050U);
}

TEST(VictimOrder, HitsDoNotProtectAHotSet)
{
  // 20 hot blocks, all touched at every step beside one of 200 cold blocks. First in, first out
  // loses each hot block once in 80 steps or so: 60 misses; an order by last access would lose
  // only the first touch of each, 20.
  device_with_range given{100, 220};
  std::size_t hot_misses = 0;
  for (std::size_t step = 0; step < 200; ++step) {
    for (std::size_t hot = 0; hot < 20; ++hot) {
      hot_misses += given.resident(hot) ? 0 : 1;
      given.touch(hot, 1, false);
    }
    given.touch(20 + step);
  }
  EXPECT_EQ(hot_misses, 60U);
}

TEST(VictimOrder, PrefetchOfAResidentBlockMovesItToTheEnd)
{
  device_with_range given{4, 8};
  given.touch(0, 4);
  given.prefetch(0);  // moves nothing, but counts as use
  given.touch(4);
  EXPECT_TRUE(given.resident(0));
  EXPECT_FALSE(given.resident(1));
  EXPECT_EQ(given.to_device(), 0U);
}

TEST(VictimOrder, HitDoesNotMoveABlockToTheEnd)
{
  device_with_range given{4, 8};
  given.touch(0, 4);
  given.touch(0);
  given.touch(4);
  EXPECT_FALSE(given.resident(0));
  EXPECT_TRUE(given.resident(1));
}

TEST(VictimOrder, UnusedChunksGoBeforeUsedOnesAndCostNoCopy)
{
  device_with_range given{4, 8};
  given.touch(0, 4);
  given.prefetch(3, 1, location::host());  // its chunk is kept, empty
  auto const before = given.to_host();
  EXPECT_EQ(given.device.view().statistics().resident_bytes, blocks(4));
  given.touch(4);
  EXPECT_EQ(given.to_host(), before);
  EXPECT_TRUE(given.resident(0));
  EXPECT_EQ(given.device.view().statistics().evicted_bytes, 0U);
}

TEST(VictimOrder, DiscardedBlockGoesFirstAndIsNotCopied)
{
  device_with_range given{4, 8};
  given.touch(0, 4);
  given.discard(given.block(3));
  given.touch(4);
  EXPECT_TRUE(given.resident(0));
  EXPECT_EQ(given.to_host(), 0U);
}

TEST(VictimOrder, PartlyDiscardedBlockStaysInItsPlace)
{
  device_with_range given{4, 8};
  given.touch(0, 4);
  given.discard({given.block(3).address, va_block_bytes / 2});
  given.touch(4);
  EXPECT_FALSE(given.resident(0));  // the oldest, not the half-empty one
  EXPECT_EQ(given.to_host(), blocks(1));
}

// What an eviction writes back

TEST(Eviction, WritesBackCleanPagesToo)
{
  device_with_range given{4, 8};
  given.touch(0, 4, false);  // only read
  given.touch(4, 1, false);
  EXPECT_EQ(given.to_host(), blocks(1));
  EXPECT_EQ(given.device.view().statistics().evicted_bytes, blocks(1));
}

TEST(Eviction, CopiesOnlyPagesThatWereEverResident)
{
  device_with_range given{1, 2};
  ASSERT_TRUE(
    given.device.program().touch({given.range.address, 1}, true).ok());  // 64 KiB by growth
  given.touch(1);
  EXPECT_EQ(given.to_host(), 65'536U);
}

TEST(Eviction, WrittenDataComeBackFromTheHost)
{
  device_with_range given{2, 4};
  given.touch(0, 4);  // 0 and 1 are evicted by 2 and 3
  auto const before = given.to_device();
  given.touch(0);
  EXPECT_EQ(given.to_device() - before, blocks(1));
}

TEST(Eviction, DiscardedPagesBroughtBackByAReadAreDroppedAgain)
{
  device_with_range given{2, 4};
  given.touch(0);
  given.discard(given.block(0));
  given.touch(0, 1, false);  // a read maps the pages and keeps the mark
  given.touch(1, 2);
  EXPECT_EQ(given.device.view().statistics().dropped_bytes, blocks(1));
  EXPECT_EQ(given.to_host(), 0U);
}

TEST(Eviction, DiscardedPagesThatWereWrittenAreCopied)
{
  device_with_range given{2, 4};
  given.touch(0);
  given.discard(given.block(0));
  given.touch(0, 1, true);
  given.touch(1, 2);
  EXPECT_EQ(given.to_host(), blocks(1));
}

// Prefetch

/** @brief Blocks in a range over a capacity of 100, and blocks moved to the device and back. */
class OverCapacityPrefetch
  : public testing::TestWithParam<std::tuple<std::size_t, std::size_t, std::size_t>> {};

TEST_P(OverCapacityPrefetch, SecondPassMovesEverythingAgain)
{
  auto const [count, to_device, to_host] = GetParam();
  device_with_range given{100, count};
  ASSERT_TRUE(given.device.program().cpu_touch(given.range, true).ok());
  given.prefetch(0, count);
  EXPECT_EQ(given.to_device(), blocks(to_device));
  EXPECT_EQ(given.to_host(), blocks(to_host));
  EXPECT_FALSE(given.resident(count - 101));
  EXPECT_EQ(given.device.view().resident_bytes(given.block(count - 100, 100)), blocks(100));
}

INSTANTIATE_TEST_SUITE_P(KernelDriver,
                         OverCapacityPrefetch,
                         testing::Values(std::tuple{101U, 202U, 102U},
                                         std::tuple{125U, 250U, 150U},
                                         std::tuple{150U, 300U, 200U}));

TEST(Prefetch, RangeThatFitsMovesOnce)
{
  device_with_range given{100, 100};
  ASSERT_TRUE(given.device.program().cpu_touch(given.range, true).ok());
  given.prefetch(0, 100);
  EXPECT_EQ(given.to_device(), blocks(100));
  EXPECT_EQ(given.to_host(), 0U);
}

TEST(Prefetch, NeverPopulatedPagesAreFilledNotCopied)
{
  device_with_range given{4, 4};
  given.prefetch(0, 4);
  EXPECT_EQ(given.to_device(), 0U);
  EXPECT_EQ(given.device.view().resident_bytes(given.range), blocks(4));
}

TEST(Prefetch, OfDiscardedPagesCopiesNothingAndClearsTheMark)
{
  device_with_range given{2, 4};
  ASSERT_TRUE(given.device.program().cpu_touch(given.block(0), true).ok());
  given.discard(given.block(0));
  given.prefetch(0);
  EXPECT_EQ(given.to_device(), 0U);
  given.touch(1, 2);  // evicts block 0, which is live again
  EXPECT_EQ(given.to_host(), blocks(1));
}

// Discard

TEST(Discard, MakesPagesResidentNowhere)
{
  device_with_range given{4, 4};
  given.touch(0);
  given.discard(given.block(0));
  EXPECT_EQ(given.device.view().resident_bytes(given.block(0)), 0U);
}

TEST(Discard, RoundsInwardToWholePages)
{
  device_with_range given{4, 4};
  given.touch(0);
  given.discard({given.range.address + 1, 2 * page_bytes});
  EXPECT_EQ(given.device.view().resident_bytes(given.block(0)), va_block_bytes - page_bytes);
}

TEST(Discard, WriteWithoutAPrefetchFaultsPageByPage)
{
  device_with_range given{4, 4};
  given.touch(0);
  auto const before = given.device.view().statistics().gpu_fault_groups;
  given.discard(given.block(0));
  given.touch(0);
  EXPECT_EQ(given.device.view().statistics().gpu_fault_groups - before,
            va_block_bytes / page_bytes);
}

// Host memory

TEST(HostMemory, IsKeptUntilTheRangeIsFreed)
{
  device_with_range given{4, 4};
  ASSERT_TRUE(given.device.program().cpu_touch(given.range, true).ok());
  given.prefetch(0, 4);
  EXPECT_EQ(given.device.view().statistics().host_page_bytes, blocks(4));
  ASSERT_TRUE(given.device.free_managed(given.range.address).ok());
  EXPECT_EQ(given.device.view().statistics().host_page_bytes, 0U);
}

TEST(HostMemory, WhenExhaustedAnEvictionFailsAndLosesNothing)
{
  simulated_device_config config;
  config.host_bytes = blocks(2);
  device_with_range given{4, 8, config};
  given.touch(0, 4);
  given.touch(4, 2);  // two evictions fit
  auto const before = given.device.view().statistics();
  auto const result = given.device.program().touch(given.block(6), true);
  EXPECT_EQ(result.code, status_code::out_of_memory);
  auto const after = given.device.view().statistics();
  EXPECT_EQ(after.resident_bytes, before.resident_bytes);
  EXPECT_EQ(after.device_to_host_bytes, before.device_to_host_bytes);
  EXPECT_EQ(given.device.view().resident_bytes(given.range), blocks(4));
}

TEST(HostMemory, FailedVictimGoesToTheEndOfTheOrder)
{
  simulated_device_config config;
  config.host_bytes = blocks(1);
  device_with_range given{4, 8, config};
  ASSERT_TRUE(
    given.device.program().cpu_touch(given.block(1), true).ok());  // it alone has host pages
  given.touch(0, 4);
  EXPECT_FALSE(given.device.program().touch(given.block(4), true).ok());  // block 0 cannot leave
  EXPECT_TRUE(given.device.program().touch(given.block(4), true).ok());   // block 1 can
  EXPECT_TRUE(given.resident(0));
  EXPECT_FALSE(given.resident(1));
}

}  // namespace
}  // namespace rmm_uvm::sim

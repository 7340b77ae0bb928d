// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/live_allocations.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

constexpr std::uintptr_t address = 0x7F00'0000'0100;

TEST(LiveAllocations, KeepsWhatWasInserted)
{
  live_allocations live;
  live.insert(address, 100);
  EXPECT_EQ(live.bytes_at(address), 100U);
  EXPECT_FALSE(live.bytes_at(address + 1));
}

TEST(LiveAllocations, HoldingFindsAnAllocationFromItsFirstByteToItsLast)
{
  live_allocations live;
  live.insert(address, 1'000);
  live.insert(address + 1'024, 256);
  for (auto const offset : {0, 1, 999}) {
    auto const found = live.holding(address + offset);
    ASSERT_TRUE(found) << offset;
    EXPECT_EQ(found->address, address);
    EXPECT_EQ(found->bytes, 1'000U);
  }
  EXPECT_FALSE(live.holding(address + 1'000));
  EXPECT_FALSE(live.holding(address - 1));
  EXPECT_FALSE(live.holding(address + 1'280));
}

TEST(LiveAllocations, HoldingAfterAFreeFindsNothing)
{
  live_allocations live;
  live.insert(address, 1'000);
  EXPECT_TRUE(live.erase(address, 1'000));
  EXPECT_FALSE(live.holding(address));
  EXPECT_FALSE(live.holding(address + 500));
}

TEST(LiveAllocations, SecondEraseIsRefused)
{
  live_allocations live;
  live.insert(address, 100);
  EXPECT_TRUE(live.erase(address, 100));
  EXPECT_FALSE(live.erase(address, 100));
  EXPECT_FALSE(live.bytes_at(address));
}

TEST(LiveAllocations, EraseWithAWrongSizeChangesNothing)
{
  live_allocations live;
  live.insert(address, 100);
  EXPECT_FALSE(live.erase(address, 101));
  EXPECT_EQ(live.bytes_at(address), 100U);
}

TEST(LiveAllocations, EraseOfAnUnknownAddressIsRefused)
{
  live_allocations live;
  EXPECT_FALSE(live.erase(address, 100));
}

TEST(LiveAllocations, ManyNeighboursDoNotGetInEachOthersWay)
{
  live_allocations live;
  for (std::size_t i = 0; i < 1'000; ++i) {
    live.insert(address + i * 256, i + 1);
  }
  for (std::size_t i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(live.erase(address + i * 256, i + 1)) << i;
  }
}

}  // namespace
}  // namespace rmm_uvm

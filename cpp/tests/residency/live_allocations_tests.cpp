// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/freed_nodes.hpp>
#include <rmm_uvm/residency/live_allocations.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <map>
#include <random>
#include <utility>
#include <vector>

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

TEST(FreedNodes, AreHandedOutAgainAndNotKeptWithoutEnd)
{
  using node = std::pair<std::uintptr_t const, std::size_t>;
  freed_nodes freed;
  node_allocator<node> allocator{freed};
  std::vector<node*> made(100);
  for (auto& each : made) {
    each = allocator.allocate(1);
  }
  EXPECT_TRUE(freed.empty());
  for (auto* each : made) {
    allocator.deallocate(each, 1);
  }
  for (std::size_t kept = 64; kept > 0; --kept) {
    ASSERT_FALSE(freed.empty()) << kept;
    EXPECT_EQ(allocator.allocate(1), made[kept - 1]);
  }
  EXPECT_TRUE(freed.empty());
  for (std::size_t number = 0; number < 64; ++number) {
    allocator.deallocate(made[number], 1);
  }
}

TEST(FreedNodes, ArraysOfBucketsComeFromTheHeap)
{
  using node = std::pair<std::uintptr_t const, std::size_t>;
  freed_nodes freed;
  node_allocator<void*> buckets{node_allocator<node>{freed}};
  buckets.deallocate(buckets.allocate(1), 1);
  EXPECT_TRUE(freed.empty());
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

TEST(LiveAllocations, HoldingAgreesWithALookAtAllOfThem)
{
  constexpr std::size_t count = 30'000;   // more than there are places to ask
  for (std::size_t const odd : {0, 8}) {  // an upstream may align to less than a place
    std::mt19937_64 random{odd};
    live_allocations live;
    std::map<std::uintptr_t, std::size_t> known;
    auto next = address + odd;
    for (std::size_t i = 0; i < count; ++i) {
      auto const kind  = random() % 100;
      auto const bytes = kind == 0   ? (std::size_t{1} << 21U) + random() % (std::size_t{64} << 20U)
                         : kind == 1 ? 1 + random() % (std::size_t{1} << 21U)
                                     : 1 + random() % 5'000;
      live.insert(next, bytes);
      known.emplace(next, bytes);
      next += (bytes + 255) / 256 * 256 + (kind % 3) * 256;
    }
    for (auto it = known.begin(); it != known.end();) {
      if (random() % 4 != 0) {
        ++it;
        continue;
      }
      ASSERT_TRUE(live.erase(it->first, it->second));
      it = known.erase(it);
    }
    ASSERT_GT(known.size(), 8'192U + 1'000U);
    for (int i = 0; i < 2'000; ++i) {
      auto const asked = address - 1'000 + random() % (next - address + 2'000);
      auto const above = known.upper_bound(asked);
      bool const held =
        above != known.begin() && asked - std::prev(above)->first < std::prev(above)->second;
      auto const found = live.holding(asked);
      ASSERT_EQ(found.has_value(), held) << asked;
      if (held) { ASSERT_EQ(found->address, std::prev(above)->first); }
    }
  }
}

TEST(LiveAllocations, PlaceInAnAllocationIsFoundAsFastBesideAMillionOthers)
{
  live_allocations live;
  constexpr std::uintptr_t large = 0x6000'0000'0000;
  live.insert(large, std::size_t{64} << 20U);
  for (std::size_t i = 0; i < 1'000'000; ++i) {
    live.insert(address + i * 512, 512);
  }
  auto const begin = std::clock();  // of the processor: others may be at work beside
  for (std::size_t i = 0; i < 1'000; ++i) {
    EXPECT_EQ(live.holding(large + (std::size_t{32} << 20U) + i)->address, large);
    EXPECT_EQ(live.holding(address + i * 512 + 300)->address, address + i * 512);
    EXPECT_FALSE(live.holding(large - 1 - i));
  }
  // A look at all of them takes 10 ms and more each time: 20 s.
  EXPECT_LT(std::clock() - begin, std::clock_t{5} * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/segment_map.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rmm_uvm {
namespace {

constexpr std::uintptr_t base = tests::slab_address;

/** @brief `bytes` from `offset` on. */
[[nodiscard]] constexpr memory_range at(std::size_t offset, std::size_t bytes) noexcept
{
  return {base + offset, bytes};
}

TEST(SegmentMap, UnknownSegmentSaysNothing)
{
  segment_map map;
  map.add_unknown(at(0, 1000));
  EXPECT_FALSE(map.on_allocate(base).has_value());
  EXPECT_EQ(map.on_free(base).bytes, 0U);
  EXPECT_FALSE(map.segment_of(base)->known);
}

TEST(SegmentMap, AddressOutsideOfSegmentsSaysNothing)
{
  segment_map map;
  map.add_free(at(0, 1000));
  EXPECT_FALSE(map.on_allocate(base + 1000).has_value());
  EXPECT_FALSE(map.on_allocate(base - 1).has_value());
  EXPECT_FALSE(map.segment_of(base + 1000).has_value());
  EXPECT_EQ(map.segment_of(base + 999)->range, at(0, 1000));
}

TEST(SegmentMap, SegmentThatIsMadeUnknownNamesWhatWasFreeAndIsListedAnew)
{
  segment_map map;
  map.add_free(at(0, 1000));
  map.add_free(at(2000, 1000));
  static_cast<void>(map.on_allocate(base));
  static_cast<void>(map.on_allocate(base + 400));
  static_cast<void>(map.on_free(base));
  std::vector<memory_range> free;
  auto const note = [&free](memory_range part) { free.push_back(part); };
  map.make_unknown(base, note);
  EXPECT_EQ(free, (std::vector{at(0, 400)}));
  map.make_unknown(base, note);         // again: it is unknown
  map.make_unknown(base + 1000, note);  // none begins there
  EXPECT_EQ(free.size(), 1U);
  EXPECT_FALSE(map.on_allocate(base).has_value());
  EXPECT_TRUE(map.on_allocate(base + 2000).has_value());  // another's parts stay
  std::vector const live{at(400, 600)};
  EXPECT_EQ(map.list(base, live), (std::vector<memory_range>{}));  // the untold one was told
  EXPECT_EQ(map.on_free(base + 400), at(400, 600));
}

TEST(SegmentMap, AllocationReachesToTheNextStart)
{
  segment_map map;
  map.add_free(at(0, 1000));
  EXPECT_EQ(map.on_allocate(base)->extent, at(0, 1000));
  auto const second = map.on_allocate(base + 400);
  EXPECT_EQ(second->extent, at(400, 600));
  EXPECT_EQ(second->newly_live.bytes, 0U);  // the first one was taken to reach there
  EXPECT_EQ(map.on_free(base), at(0, 400));
  EXPECT_EQ(map.on_allocate(base)->newly_live, at(0, 400));
}

TEST(SegmentMap, AllocationReachesFromWhatALivePartLeftIntoWhatIsFreeBehindIt)
{
  segment_map map;
  map.add_free(at(0, 1000));
  static_cast<void>(map.on_allocate(base));
  static_cast<void>(map.on_allocate(base + 500));
  static_cast<void>(map.on_free(base));
  static_cast<void>(map.on_allocate(base));  // a shorter one: nobody says so
  static_cast<void>(map.on_free(base + 500));
  auto const third = map.on_allocate(base + 200);
  EXPECT_EQ(third->extent, at(200, 800));
  EXPECT_EQ(third->newly_live, at(500, 500));
  EXPECT_EQ(map.on_free(base), at(0, 200));
  EXPECT_EQ(map.on_free(base + 200), at(200, 800));
}

TEST(SegmentMap, AllocationInWhatALivePartLeftEndsWhereTheNextLiveOneBegins)
{
  segment_map map;
  map.add_free(at(0, 1000));
  map.add_free(at(1000, 1000));  // free, and another one's
  static_cast<void>(map.on_allocate(base));
  EXPECT_EQ(map.on_allocate(base + 200)->extent, at(200, 800));
  static_cast<void>(map.on_allocate(base + 600));
  auto const between = map.on_allocate(base + 400);
  EXPECT_EQ(between->extent, at(400, 200));
  EXPECT_EQ(between->newly_live.bytes, 0U);
}

TEST(SegmentMap, AllocationInTheMiddleOfWhatIsFreeLeavesTheBeginningFree)
{
  segment_map map;
  map.add_free(at(0, 1000));
  EXPECT_EQ(map.on_allocate(base + 400)->newly_live, at(400, 600));
  EXPECT_EQ(map.on_allocate(base)->extent, at(0, 400));
}

TEST(SegmentMap, RepeatedAllocationMakesNothingLiveAnew)
{
  segment_map map;
  map.add_free(at(0, 1000));
  EXPECT_EQ(map.on_allocate(base)->newly_live.bytes, 1000U);
  auto const again = map.on_allocate(base);
  EXPECT_EQ(again->extent, at(0, 1000));
  EXPECT_EQ(again->newly_live.bytes, 0U);
}

TEST(SegmentMap, FreeOfWhatDoesNotBeginThereFreesNothing)
{
  segment_map map;
  map.add_free(at(0, 1000));
  EXPECT_EQ(map.on_free(base).bytes, 0U);  // free already
  EXPECT_TRUE(map.on_allocate(base).has_value());
  EXPECT_EQ(map.on_free(base + 10).bytes, 0U);
  EXPECT_EQ(map.on_free(base + 5000).bytes, 0U);
  EXPECT_EQ(map.on_free(base), at(0, 1000));
  EXPECT_EQ(map.on_free(base).bytes, 0U);
}

TEST(SegmentMap, ListGivesWhatIsBetweenTheLive)
{
  segment_map map;
  map.add_unknown(at(0, 1000));
  std::vector<memory_range> const live{at(600, 100), at(200, 100)};  // in no order
  EXPECT_EQ(map.list(base, live),
            (std::vector<memory_range>{at(0, 200), at(300, 300), at(700, 300)}));
  EXPECT_TRUE(map.segment_of(base)->known);
  EXPECT_EQ(map.on_free(base + 200), at(200, 100));
  EXPECT_EQ(map.on_allocate(base)->extent, at(0, 600));  // joined with both sides
}

TEST(SegmentMap, ListOfAKnownOrStrangeSegmentSaysNothing)
{
  segment_map map;
  map.add_free(at(0, 1000));
  EXPECT_TRUE(map.list(base, {}).empty());
  EXPECT_TRUE(map.list(base + 5000, {}).empty());
  EXPECT_EQ(map.on_allocate(base)->extent, at(0, 1000));
}

TEST(SegmentMap, ListCutsWhatOverlapsAndWhatReachesOutside)
{
  segment_map map;
  map.add_unknown(at(1000, 1000));
  std::vector<memory_range> const live{at(1100, 200), at(1200, 200), at(1900, 500), at(5000, 10)};
  EXPECT_EQ(map.list(base + 1000, live), (std::vector<memory_range>{at(1000, 100), at(1400, 500)}));
}

TEST(SegmentMap, WhatWasToldBeforeTheListIsNewerThanIt)
{
  segment_map map;
  map.add_unknown(at(0, 1000));
  std::vector<memory_range> const live{at(100, 100), at(300, 100), at(700, 100)};
  EXPECT_EQ(map.on_free(base + 300).bytes, 0U);
  EXPECT_FALSE(map.on_allocate(base + 250).has_value());  // where one of the list was
  EXPECT_EQ(map.list(base, live),
            (std::vector<memory_range>{at(0, 100), at(200, 50), at(800, 200)}));
  EXPECT_EQ(map.on_free(base + 250), at(250, 450));
  EXPECT_EQ(map.on_free(base + 300).bytes, 0U);
}

TEST(SegmentMap, SameStartToldBeforeTheListMayBeLongerThanListed)
{
  segment_map map;
  map.add_unknown(at(0, 1000));
  std::vector<memory_range> const live{at(100, 100)};
  static_cast<void>(map.on_free(base + 100));
  static_cast<void>(map.on_allocate(base + 100));
  EXPECT_EQ(map.list(base, live), (std::vector<memory_range>{at(0, 100)}));
}

TEST(SegmentMap, WhatWasToldOfASegmentThatWentIsForgotten)
{
  segment_map map;
  map.add_unknown(at(0, 1000));
  static_cast<void>(map.on_allocate(base + 100));
  map.remove(base);
  map.add_unknown(at(0, 1000));
  EXPECT_EQ(map.list(base, {}), (std::vector<memory_range>{at(0, 1000)}));
}

TEST(SegmentMap, SameStartAfterAnotherOneIsAnotherPlace)
{
  segment_map map;
  map.add_free(at(0, 1000));
  map.add_free(at(5000, 1000));
  static_cast<void>(map.on_allocate(base));
  map.measured(base, 300);
  static_cast<void>(map.on_free(base));
  static_cast<void>(map.on_allocate(base + 5000));
  EXPECT_EQ(map.on_allocate(base)->likely_bytes, 0U);  // nothing came before it last time
}

TEST(SegmentMap, SameStartAfterTheSameOneIsAnotherPlaceIfOthersCameBefore)
{
  segment_map map;
  map.add_free(at(0, 1000));
  map.add_free(at(5000, 1000));
  map.add_free(at(9000, 1000));
  auto const one = [&map](std::uintptr_t start, std::size_t bytes) {
    auto const likely_bytes = map.on_allocate(start)->likely_bytes;
    map.measured(start, bytes);
    static_cast<void>(map.on_free(start));
    return likely_bytes;
  };
  std::vector<std::size_t> last;
  for (int round = 0; round < 3; ++round) {
    last.clear();
    // A convolution's workspace, and a smaller one of its backward pass at the same place.
    one(base + 9000, 100);
    one(base + 5000, 100);
    last.push_back(one(base, 900));
    one(base + 5000, 100);
    last.push_back(one(base, 200));
  }
  EXPECT_EQ(last, (std::vector<std::size_t>{900, 200}));
}

TEST(SegmentMap, LongerOfTheLastTwoSizesIsLikely)
{
  segment_map map;
  map.add_free(at(0, 1000));
  auto const one = [&map](std::size_t bytes) {
    auto const likely_bytes = map.on_allocate(base)->likely_bytes;
    map.measured(base, bytes);
    static_cast<void>(map.on_free(base));
    return likely_bytes;
  };
  for (int round = 0; round < 4; ++round) {
    one(100);
  }
  EXPECT_EQ(one(900), 100U);
  EXPECT_EQ(one(100), 900U);
  EXPECT_EQ(one(100), 900U);
  EXPECT_EQ(one(100), 100U);
}

TEST(SegmentMap, MeasureOfWhatIsNotLiveIsNotTaken)
{
  segment_map map;
  map.add_free(at(0, 1000));
  map.measured(base, 300);
  map.measured(base + 5000, 300);
  for (int round = 0; round < 4; ++round) {  // after itself, as it will be again
    static_cast<void>(map.on_allocate(base));
    static_cast<void>(map.on_free(base));
  }
  EXPECT_EQ(map.on_allocate(base)->likely_bytes, 1000U);
}

TEST(SegmentMap, LikelySizeIsNeverBeyondTheExtent)
{
  segment_map map;
  map.add_free(at(0, 1000));
  for (int round = 0; round < 4; ++round) {
    static_cast<void>(map.on_allocate(base));
    map.measured(base, 4000);  // wrongly
    EXPECT_EQ(map.on_free(base).bytes, 1000U);
  }
  EXPECT_EQ(map.on_allocate(base)->likely_bytes, 1000U);
}

TEST(SegmentMap, RemovedSegmentIsForgottenAndItsNeighboursStay)
{
  segment_map map;
  for (std::size_t const offset : {0U, 1000U, 2000U}) {
    map.add_free(at(offset, 1000));
  }
  static_cast<void>(map.on_allocate(base));
  static_cast<void>(map.on_allocate(base + 1000));
  static_cast<void>(map.on_allocate(base + 1500));
  map.remove(base + 1000);
  map.remove(base + 1000);  // twice: nothing there
  EXPECT_FALSE(map.on_allocate(base + 1000).has_value());
  EXPECT_EQ(map.on_free(base + 1500).bytes, 0U);
  EXPECT_EQ(map.on_free(base), at(0, 1000));
  EXPECT_EQ(map.on_allocate(base + 2000)->extent, at(2000, 1000));
}

TEST(SegmentMap, SegmentsThatTouchAreNotJoined)
{
  for (bool const upward : {true, false}) {
    segment_map map;
    map.add_free(at(0, 1000));
    map.add_free(at(1000, 1000));
    auto const first = upward ? base + 1000 : base;
    auto const other = upward ? base : base + 1000;
    for (auto const start : {first, other}) {
      static_cast<void>(map.on_allocate(start));
    }
    static_cast<void>(map.on_free(first));
    static_cast<void>(map.on_free(other));
    EXPECT_EQ(map.on_allocate(base)->extent, at(0, 1000));
    EXPECT_EQ(map.on_allocate(base + 1000)->extent, at(1000, 1000));
  }
}

}  // namespace
}  // namespace rmm_uvm

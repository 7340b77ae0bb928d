// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"
#include "../support/caching_allocator.hpp"

#include <rmm_uvm/residency/segment_map.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::caching_allocator;

constexpr std::uintptr_t base = tests::slab_address;

/** @brief `bytes` from `offset` on. */
[[nodiscard]] constexpr memory_range at(std::size_t offset, std::size_t bytes) noexcept
{
  return {base + offset, bytes};
}

/** @brief What a map said to be live, as the ledger would count it. */
class said_to_be_live {
 public:
  /** @return whether none of it was live */
  [[nodiscard]] bool add(memory_range range)
  {
    return each(range, [](int& count) { return ++count == 1; });
  }
  /** @return whether all of it was live */
  [[nodiscard]] bool take(memory_range range)
  {
    return each(range, [](int& count) { return --count == 0; });
  }
  [[nodiscard]] bool has(memory_range range)
  {
    return each(range, [](int const& count) { return count == 1; });
  }
  [[nodiscard]] bool empty() const
  {
    return std::all_of(live_.begin(), live_.end(), [](int count) { return count == 0; });
  }

 private:
  template <typename Visit>
  [[nodiscard]] bool each(memory_range range, Visit const& visit)
  {
    bool all = true;
    for (auto place = range.address; place < range.end();
         place += caching_allocator::alignment_bytes) {
      all = visit(live_.at((place - base) / caching_allocator::alignment_bytes)) && all;
    }
    return all;
  }

  std::vector<int> live_ =
    std::vector<int>((std::size_t{5} * 4U << 20U) / caching_allocator::alignment_bytes);
};

[[nodiscard]] bool overlap(memory_range a, memory_range b) noexcept
{
  return a.address < b.end() && b.address < a.end();
}

/** @brief A program over a caching allocator, of which a map is told the starts alone. */
class followed_program {
 public:
  static constexpr std::size_t segment_bytes = 4U << 20U;

  explicit followed_program(std::uint64_t seed) : random_{seed}
  {
    // The first two touch; the third stands alone.
    for (std::size_t const offset : {0U, 1U, 4U}) {
      allocator_.add_segment(at(offset * segment_bytes, segment_bytes));
    }
  }
  /**
   * @brief Steps of which the map is not told, a list, steps of which it is; then it gets the list.
   */
  void run_untold(int steps)
  {
    for (auto const offset : {0U, 1U, 4U}) {
      memory_range const segment = at(offset * segment_bytes, segment_bytes);
      map.add_unknown(segment);
      EXPECT_TRUE(said_.add(segment));
    }
    std::vector<memory_range> listed;
    for (int step = 0; step < 2 * steps; ++step) {
      bool const told = step >= steps;
      if (step == steps) { listed = allocator_.live(); }
      if (random_() % 5 < 2 && !live_.empty()) {
        auto const start = drop();
        allocator_.give(start);
        if (told) { EXPECT_EQ(map.on_free(start).bytes, 0U); }
      } else if (auto const start = allocator_.take(bytes())) {
        live_.push_back(*start);
        if (told) { EXPECT_FALSE(map.on_allocate(*start).has_value()); }
      }
    }
    for (auto const offset : {0U, 1U, 4U}) {
      for (auto const& free : map.list(base + offset * segment_bytes, listed)) {
        EXPECT_TRUE(said_.take(free));
        expect_dead(free);
      }
    }
  }
  void follow_all()
  {
    for (auto const offset : {0U, 1U, 4U}) {
      map.add_free(at(offset * segment_bytes, segment_bytes));
    }
  }
  void run(int steps)
  {
    for (int step = 0; step < steps; ++step) {
      if (random_() % 5 < 2 && !live_.empty()) {
        free_one();
      } else {
        allocate(bytes());
      }
      if (testing::Test::HasFailure()) { return; }
    }
    while (!live_.empty()) {
      free_one();
    }
    EXPECT_TRUE(said_.empty());
  }
  void allocate(std::size_t wanted)
  {
    auto const start = allocator_.take(wanted);
    if (!start) { return; }
    live_.push_back(*start);
    auto const carved = map.on_allocate(*start);
    ASSERT_TRUE(carved.has_value());
    EXPECT_TRUE(carved->extent.covers(allocator_.at(*start)));
    EXPECT_LE(carved->likely_bytes, carved->extent.bytes);
    EXPECT_TRUE(said_.add(carved->newly_live));
    for (auto const& one : allocator_.live()) {  // the rest of the extent is nobody else's
      EXPECT_TRUE(one.address == *start || !overlap(one, carved->extent));
    }
  }

  segment_map map;

 private:
  [[nodiscard]] std::size_t bytes()
  {
    static constexpr std::size_t most[] = {512, 8'192, 1U << 18U, 2U << 20U};  // NOLINT
    return 1 + random_() % most[random_() % 4];
  }
  [[nodiscard]] std::uintptr_t drop()
  {
    std::swap(live_[random_() % live_.size()], live_.back());
    auto const start = live_.back();
    live_.pop_back();
    return start;
  }
  void free_one()
  {
    auto const start = drop();
    EXPECT_TRUE(said_.has(allocator_.at(start)));
    allocator_.give(start);
    auto const freed = map.on_free(start);
    EXPECT_GT(freed.bytes, 0U);
    EXPECT_TRUE(said_.take(freed));
    expect_dead(freed);
  }
  void expect_dead(memory_range range) const
  {
    for (auto const& one : allocator_.live()) {
      EXPECT_FALSE(overlap(one, range));
    }
  }

  std::mt19937_64 random_;
  caching_allocator allocator_;
  said_to_be_live said_;
  std::vector<std::uintptr_t> live_;
};

class SegmentMapProperties : public testing::TestWithParam<std::uint64_t> {};

TEST_P(SegmentMapProperties, StartsAloneTellWhatIsFreeForCertain)
{
  followed_program program{GetParam()};
  program.follow_all();
  program.run(400);
}

TEST_P(SegmentMapProperties, AListAndStartsTellWhatIsFreeForCertain)
{
  followed_program program{GetParam()};
  program.run_untold(200);
  program.run(400);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SegmentMapProperties, testing::Range<std::uint64_t>(1, 13));

/** @brief A training step: what a layer keeps and what it only works with, then all is freed. */
class iteration {
 public:
  explicit iteration(bool measures) : measures_{measures}
  {
    allocator_.add_segment(at(0, followed_program::segment_bytes));
    map_.add_free(at(0, followed_program::segment_bytes));
  }
  /** @return likely size and size of each allocation */
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> run()
  {
    std::mt19937_64 random{7};
    std::vector<std::uintptr_t> kept;
    sizes_.clear();
    for (int layer = 0; layer < 24; ++layer) {
      kept.push_back(take(1 + random() % 100'000));
      give(take(1 + random() % 100'000));
    }
    for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
      give(*it);
    }
    return sizes_;
  }

 private:
  [[nodiscard]] std::uintptr_t take(std::size_t bytes)
  {
    auto const start = allocator_.take(bytes).value();
    auto const made  = map_.on_allocate(start).value();
    if (measures_) { map_.measured(start, caching_allocator::rounded(bytes)); }
    sizes_.emplace_back(made.likely_bytes, caching_allocator::rounded(bytes));
    return start;
  }
  void give(std::uintptr_t start)
  {
    static_cast<void>(map_.on_free(start));
    allocator_.give(start);
  }

  bool measures_;
  caching_allocator allocator_;
  segment_map map_;
  std::vector<std::pair<std::size_t, std::size_t>> sizes_;
};

TEST(SegmentMap, MeasuredSizesAreExactAfterTheSecondIdenticalIteration)
{
  iteration program{true};
  for (auto const& [likely, actual] : program.run()) {
    EXPECT_EQ(likely, 0U) << actual;
  }
  static_cast<void>(program.run());  // the first one of all came after nothing
  for (auto const& [likely, actual] : program.run()) {
    EXPECT_EQ(likely, actual);
  }
}

TEST(SegmentMap, SizesThatNobodyMeasuredAreNeverTooShort)
{
  iteration program{false};
  static_cast<void>(program.run());
  static_cast<void>(program.run());
  std::size_t exact = 0;
  std::size_t all   = 0;
  for (auto const& [likely, actual] : program.run()) {
    EXPECT_GE(likely, actual);
    exact += likely == actual ? 1 : 0;
    ++all;
  }
  EXPECT_GE(2 * exact, all);  // what is kept, since another one begins at its end
  EXPECT_LT(exact, all);
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

TEST(SegmentMap, MeasureOfWhatIsNotLiveIsNotTaken)
{
  segment_map map;
  map.add_free(at(0, 1000));
  map.measured(base, 300);
  map.measured(base + 5000, 300);
  static_cast<void>(map.on_allocate(base));
  static_cast<void>(map.on_free(base));
  static_cast<void>(map.on_allocate(base));  // after itself, as it will be again
  static_cast<void>(map.on_free(base));
  EXPECT_EQ(map.on_allocate(base)->likely_bytes, 1000U);
}

TEST(SegmentMap, LikelySizeIsNeverBeyondTheExtent)
{
  segment_map map;
  map.add_free(at(0, 1000));
  for (int round = 0; round < 2; ++round) {
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

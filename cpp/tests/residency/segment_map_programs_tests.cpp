// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A map that is told of programs over a caching allocator, random ones and ones that repeat.
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

}  // namespace
}  // namespace rmm_uvm

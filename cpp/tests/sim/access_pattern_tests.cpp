// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/access_pattern.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace rmm_uvm::sim {
namespace {

/** @brief Every page of a pattern over `range_pages`, in order. */
[[nodiscard]] std::vector<std::uint64_t> pages_of(access_pattern const& pattern,
                                                  std::uint64_t range_pages,
                                                  std::uint64_t most = 512)
{
  access_cursor cursor{pattern, range_pages};
  std::vector<std::uint64_t> found;
  page_run run;
  while (cursor.next(most, run)) {
    EXPECT_GT(run.count, 0U);
    for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
      EXPECT_LT(page, range_pages);
      found.push_back(page);
    }
  }
  return found;
}

TEST(AccessPattern, SequentialGoesUpwardsWhateverTheRuns)
{
  for (auto const most : {1U, 16U, 512U}) {
    auto const pages = pages_of({}, 1000, most);
    ASSERT_EQ(pages.size(), 1000U);
    EXPECT_TRUE(std::is_sorted(pages.begin(), pages.end()));
  }
}

TEST(AccessPattern, StridedSeesEveryPageOnceInSteps)
{
  auto const pages = pages_of({.kind = pattern_kind::strided, .stride_pages = 7}, 100);
  EXPECT_EQ(pages[1], 7U);
  EXPECT_EQ(pages[15], 1U);  // 0, 7 ... 98, then from 1 on
  EXPECT_EQ(pages.size(), 100U);
  EXPECT_EQ((std::set<std::uint64_t>{pages.begin(), pages.end()}.size()), 100U);
}

TEST(AccessPattern, RandomIsTheSameForTheSameSeedAndSpreadsEvenly)
{
  access_pattern pattern{.kind = pattern_kind::random, .count = 100'000, .seed = 3};
  auto const pages = pages_of(pattern, 100);
  EXPECT_EQ(pages.size(), 100'000U);
  EXPECT_EQ(pages, pages_of(pattern, 100));
  pattern.seed = 4;
  EXPECT_NE(pages, pages_of(pattern, 100));
  std::map<std::uint64_t, int> counts;
  for (auto const page : pages) {
    ++counts[page];
  }
  ASSERT_EQ(counts.size(), 100U);
  for (auto const& [page, count] : counts) {
    EXPECT_NEAR(count, 1000, 200);
  }
}

TEST(AccessPattern, ZipfMeetsFewPagesMostOften)
{
  for (auto const exponent : {0.8, 1.0, 1.2}) {
    auto const pages = pages_of(
      {.kind = pattern_kind::zipf, .count = 100'000, .exponent = exponent, .seed = 1}, 10'000);
    std::map<std::uint64_t, int> counts;
    for (auto const page : pages) {
      ++counts[page];
    }
    std::vector<int> sorted;
    for (auto const& [page, count] : counts) {
      sorted.push_back(count);
    }
    std::sort(sorted.rbegin(), sorted.rend());
    // The first is met about 10^exponent times as often as the tenth; wide bounds, since the
    // ranks are drawn from the continuous distribution.
    auto const ratio = static_cast<double>(sorted[0]) / sorted[9];
    EXPECT_GT(ratio, 3.0) << exponent;
    EXPECT_LT(ratio, 30.0) << exponent;
  }
}

TEST(AccessPattern, PointerChaseVisitsEveryPageBeforeAnyTwice)
{
  auto const pages = pages_of({.kind = pattern_kind::pointer_chase, .count = 997, .seed = 5}, 997);
  EXPECT_EQ((std::set<std::uint64_t>{pages.begin(), pages.end()}.size()), 997U);
  EXPECT_FALSE(std::is_sorted(pages.begin(), pages.end()));
}

TEST(AccessPattern, HashJoinProbeNowAndThenCrossesIntoTheNextPage)
{
  access_cursor cursor{{.kind = pattern_kind::hash_join_probe, .count = 12'800, .seed = 2}, 1000};
  page_run run;
  int crossing = 0;
  int probes   = 0;
  while (cursor.next(16, run)) {
    ++probes;
    crossing += run.count == 2 ? 1 : 0;
  }
  EXPECT_EQ(probes, 12'800);
  EXPECT_NEAR(crossing, 100, 50);
}

TEST(AccessPattern, RecordedGivesWhatIsListed)
{
  auto const listed =
    std::make_shared<std::vector<std::uint64_t> const>(std::vector<std::uint64_t>{5, 5, 0, 9});
  EXPECT_EQ(pages_of({.kind = pattern_kind::recorded, .pages = listed}, 10), *listed);
  EXPECT_TRUE(pages_of({.kind = pattern_kind::recorded}, 10).empty());
}

TEST(AccessPattern, OfOnePageIsThatPage)
{
  for (auto const kind : {pattern_kind::random,
                          pattern_kind::zipf,
                          pattern_kind::pointer_chase,
                          pattern_kind::hash_join_probe}) {
    EXPECT_EQ(pages_of({.kind = kind, .count = 3}, 1), (std::vector<std::uint64_t>{0, 0, 0}));
  }
}

TEST(AccessPattern, ZipfIsTheSameOnEveryMachineWhateverItsExponent)
{
  std::uint64_t folded = 0;
  for (auto const exponent : {1e-9, 0.5, 1.0, 1.1, 3.0, 99.0}) {
    for (auto const page :
         pages_of({.kind = pattern_kind::zipf, .count = 1000, .exponent = exponent, .seed = 5},
                  1'000'003)) {
      ASSERT_LT(page, 1'000'003U);
      folded = folded * 31 + page;
    }
  }
  EXPECT_EQ(folded, 1'774'048'652'828'111'702U);
}

}  // namespace
}  // namespace rmm_uvm::sim

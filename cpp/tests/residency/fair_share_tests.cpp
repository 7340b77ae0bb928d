// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How budgets that agree divide a device, and what each wants of it; no device.
#include <rmm_uvm/residency/budget/wanted_bytes.hpp>
#include <rmm_uvm/residency/budget_sharing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <vector>

namespace rmm_uvm {
namespace {

using std::chrono::milliseconds;

[[nodiscard]] std::size_t share_beside(std::size_t mine, std::vector<std::size_t> const& others)
{
  std::vector<budget_share> shares;
  shares.reserve(others.size());
  for (auto const wanted : others) {
    shares.push_back({wanted, 0, 0});
  }
  return fair_share(1000, mine, shares);
}

TEST(FairShare, EqualWantsHaveEqualParts)
{
  EXPECT_EQ(share_beside(800, {800}), 500U);
  EXPECT_EQ(share_beside(5000, {800}), 500U);
  EXPECT_EQ(share_beside(800, {800, 900, 1000}), 250U);
}

TEST(FairShare, WhoWantsLittleHasItAndTheOthersHaveTheRest)
{
  EXPECT_EQ(share_beside(100, {1500}), 100U);
  EXPECT_EQ(share_beside(1500, {100}), 900U);
  EXPECT_EQ(share_beside(1500, {100, 300, 600}), 300U);
  EXPECT_EQ(share_beside(1500, {0}), 1000U);
}

TEST(FairShare, WhatNobodyWantsIsDividedEqually)
{
  EXPECT_EQ(share_beside(100, {300}), 400U);
  EXPECT_EQ(share_beside(300, {100}), 600U);
  EXPECT_EQ(share_beside(0, {0, 0, 0}), 250U);
  EXPECT_EQ(share_beside(0, {}), 1000U);
}

TEST(FairShare, AllTogetherHaveNoMoreThanThereIs)
{
  for (std::size_t seed = 1; seed < 500; ++seed) {
    std::vector<std::size_t> wants(2 + seed % 5);
    for (std::size_t each = 0; each < wants.size(); ++each) {
      wants[each] = (seed * 7919 + each * 104729) % 900;
    }
    std::size_t all = 0;
    for (std::size_t each = 0; each < wants.size(); ++each) {
      auto others = wants;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(each));
      auto const share = share_beside(wants[each], others);
      EXPECT_GE(share, std::min(wants[each], 1000 / wants.size())) << seed;
      all += share;
    }
    EXPECT_LE(all, 1000U) << seed;
    EXPECT_GE(all, 1000U - wants.size()) << seed;
  }
}

TEST(WantedBytes, RiseAtOnceAndFallByAndBy)
{
  wanted_watch watch;
  EXPECT_EQ(watch.look(0, 10, true, milliseconds{20}), 10U);
  EXPECT_EQ(watch.look(8000, 10, true, milliseconds{20}), 9000U);
  EXPECT_EQ(watch.look(0, 10, true, milliseconds{20}), 8930U);
  for (int look = 0; look < 100; ++look) {
    static_cast<void>(watch.look(0, 10, true, milliseconds{20}));
  }
  EXPECT_LT(watch.look(0, 10, true, milliseconds{20}), 4500U);
}

/** @brief Looks until it counts as idle. @return how many seconds that took */
int seconds_until_idle(wanted_watch& watch)
{
  int seconds = 0;
  while (!watch.idle() && seconds < 10'000) {
    static_cast<void>(watch.look(8000, 10, false, milliseconds{1000}));
    ++seconds;
  }
  return seconds;
}

TEST(WantedBytes, OfAProgramThatDoesNothingAreNoneAfterAWhile)
{
  wanted_watch watch;
  static_cast<void>(watch.look(8000, 10, true, milliseconds{20}));
  EXPECT_EQ(seconds_until_idle(watch), 31);
  for (int look = 0; look < 1000; ++look) {
    static_cast<void>(watch.look(8000, 10, false, milliseconds{20}));
  }
  EXPECT_LT(watch.look(8000, 10, false, milliseconds{20}), 200U);
  EXPECT_EQ(watch.look(8000, 10, true, milliseconds{20}), 9000U);  // at work again
  EXPECT_EQ(seconds_until_idle(watch), 61);                        // and given twice as long
}

}  // namespace
}  // namespace rmm_uvm

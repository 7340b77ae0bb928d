// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/owner_load.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace rmm_uvm {
namespace {

using std::chrono::milliseconds;

constexpr busy_thresholds thresholds{0.5, 0.25};

TEST(OwnerLoad, LinksCountForTheProgramWhileNobodyElseHoldsItsMemory)
{
  auto const alone = load_of_owner(0.1, 0.9, false);
  EXPECT_EQ(alone.at_least, 0.9);
  EXPECT_EQ(alone.at_most, 0.9);
  auto const beside = load_of_owner(0.1, 0.9, true);
  EXPECT_EQ(beside.at_least, 0.1);
  EXPECT_EQ(beside.at_most, 0.9);
}

TEST(OwnerLoad, WithoutAnyoneWhoTellsOwnMovesAreAllThatIsKnown)
{
  auto const load = load_of_owner(0.6, std::nullopt, true);
  EXPECT_EQ(load.at_least, 0.6);
  EXPECT_EQ(load.at_most, 0.6);
}

TEST(OwnerLoad, EverySampleMustAgreeBeforeAnythingChanges)
{
  std::vector<owner_load> recent{{0.6, 0.9}, {0.6, 0.6}, {0.4, 0.9}};
  EXPECT_FALSE(wants_links(recent, thresholds, false));
  recent.back() = {0.51, 1};
  EXPECT_TRUE(wants_links(recent, thresholds, false));
  EXPECT_TRUE(wants_links({}, thresholds, true));
  EXPECT_FALSE(wants_links({}, thresholds, false));
}

TEST(OwnerLoad, IdleIsOnlyWhatIsSoAtMost)
{
  std::vector<owner_load> recent{{0, 0.9}, {0, 0.1}, {0, 0.1}};
  EXPECT_TRUE(wants_links(recent, thresholds, true));
  recent.front() = {0, 0.2};
  EXPECT_FALSE(wants_links(recent, thresholds, true));
}

TEST(MovingTime, CallsAtOnceCountOnceAndThoseUnderWayCountSoFar)
{
  moving_time time;
  moving_time::time_point const begun{};
  auto const at = [begun](int ms) { return begun + milliseconds{ms}; };
  time.begin(at(10));
  time.begin(at(20));
  time.end(at(30));
  time.end(at(40));
  EXPECT_DOUBLE_EQ(time.take_fraction(at(0), at(100)), 0.3);
  EXPECT_DOUBLE_EQ(time.take_fraction(at(100), at(200)), 0);
  time.begin(at(250));
  EXPECT_DOUBLE_EQ(time.take_fraction(at(200), at(300)), 0.5);
  time.end(at(310));
  EXPECT_DOUBLE_EQ(time.take_fraction(at(300), at(400)), 0.1);
  EXPECT_DOUBLE_EQ(time.take_fraction(at(400), at(400)), 0);
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The rule by which a budget follows what others leave; no device.
#include <rmm_uvm/residency/auto_budget.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace rmm_uvm {
namespace {

constexpr std::size_t most  = 6400;  // steps of 25 down, of 100 up
constexpr std::size_t least = 100;

class AutoBudget : public testing::Test {
 protected:
  /** @brief What the device's memory shows while `kept` bytes are kept for ours, `there` of them
   * used. */
  std::size_t reading(std::size_t unmanaged,
                      std::size_t hidden,
                      std::size_t there,
                      std::size_t kept)
  {
    return rule.follow({unmanaged + hidden + kept, unmanaged, there, kept});
  }

  auto_budget rule{most, least};
};

TEST_F(AutoBudget, IsEverythingWhereNobodyElseIs)
{
  EXPECT_EQ(rule.budget_bytes(), most);
  EXPECT_EQ(reading(0, 0, 0, 0), most);
  EXPECT_EQ(reading(0, 0, 6000, 6000), most);
}

TEST_F(AutoBudget, ShrinksAndGrowsByWhatOthersAreToldToHold)
{
  EXPECT_EQ(reading(1000, 0, 3000, 3000), 5400U);
  EXPECT_EQ(reading(3000, 0, 3000, 3000), 3400U);
  EXPECT_EQ(reading(0, 0, 3000, 3000), most);
}

TEST_F(AutoBudget, WhatTheDriverKeepsForBlocksThatLeftIsOurs)
{
  EXPECT_EQ(reading(0, 500, 0, 0), 5900U);
  // All of 5900 was there, and 900 are since: free memory shows none of it.
  for (std::size_t left = 0; left <= 5000; left += 1000) {
    EXPECT_EQ(reading(0, 500, 5900 - left, 5900), 5900U);
  }
  EXPECT_EQ(rule.hidden_bytes(), 500U);
}

TEST_F(AutoBudget, WhatIsHiddenIsFoundAsFarAsItShows)
{
  EXPECT_EQ(reading(0, 0, 1000, 1000), most);
  EXPECT_EQ(reading(0, 2000, 1000, 1000), 4400U);  // free memory fell by more than is ours
  EXPECT_EQ(reading(0, 0, 1000, 1000), most);      // and came back
  EXPECT_EQ(rule.hidden_bytes(), 0U);
}

TEST_F(AutoBudget, DoesNotGetSmallerAndSmallerByReadingsThatDiffer)
{
  // As many blocks as ever leave and come again; the driver gives some memory back, and takes it.
  EXPECT_EQ(reading(400, 300, 5700, 5700), 5700U);
  for (std::size_t round = 0; round < 50; ++round) {
    auto const given_back = round % 7 * 300;
    auto const used       = 400 + 300 + 5700 - given_back;
    auto const there      = 5700 - round % 11 * 400;
    auto const bound      = used - 700;  // more than this cannot be there
    static_cast<void>(rule.follow({used, 400, there < bound ? there : bound, 5700}));
    EXPECT_EQ(rule.budget_bytes(), 5700U) << round;
  }
}

TEST_F(AutoBudget, SmallStepsAreNotFollowed)
{
  EXPECT_EQ(reading(1000, 0, 0, 0), 5400U);
  EXPECT_EQ(reading(1025, 0, 0, 0), 5400U);
  EXPECT_EQ(reading(1026, 0, 0, 0), 5374U);  // a 256th
  EXPECT_EQ(reading(926, 0, 0, 0), 5374U);
  EXPECT_EQ(reading(925, 0, 0, 0), 5475U);  // a 64th
  EXPECT_EQ(reading(0, 0, 0, 0), most);
}

TEST_F(AutoBudget, NeverIsLessThanItMayBe)
{
  EXPECT_EQ(reading(7000, 0, 0, 0), least);
  EXPECT_EQ(rule.follow({~std::size_t{0}, 0, 0, 0, false}), least);
  EXPECT_EQ(rule.follow({0, ~std::size_t{0}, 100, 0}), least);
}

TEST_F(AutoBudget, HasHalfOfWhatIsSharedWithWhatIsHidden)
{
  EXPECT_EQ(reading(0, 6000, 0, 0), most / 2);  // somebody's managed memory, idle perhaps
  EXPECT_EQ(reading(1400, 4800, 0, 0), 2500U);
  EXPECT_EQ(reading(0, 1000, 0, 0), 5400U);
}

TEST_F(AutoBudget, TwoThatBothWantEverythingHaveAHalfEach)
{
  auto_budget other{most, least};
  std::size_t mine = 0, theirs = 0;
  for (int round = 0; round < 20; ++round) {  // each takes as much as its budget lets it
    mine   = rule.follow({mine + theirs, 0, mine, mine});
    theirs = other.follow({mine + theirs, 0, theirs, theirs});
  }
  EXPECT_EQ(mine + theirs, most);
  EXPECT_GE(theirs, most / 2);
  EXPECT_GE(mine, most / 2);
}

TEST(SharedBudget, GrowsAsFastAsOthersLeave)
{
  auto_budget rule{most, least};
  for (std::size_t there = 6000; there > 3200; there -= 400) {
    std::array<budget_share, 1> const others{{{9000, there, 6000}}};
    EXPECT_EQ(rule.follow({6000, 0, 0, 0}, 9000, others), most - there);
  }
  std::array<budget_share, 1> const others{{{9000, 2000, 6000}}};
  EXPECT_EQ(rule.follow({6000, 0, 0, 0}, 9000, others), most / 2);
}

TEST(SharedBudget, WhatIsOnItsWayFromTheDeviceHasNotLeft)
{
  auto_budget rule{most, least};
  for (std::size_t there = 6000; there > 3200; there -= 400) {
    std::array<budget_share, 1> const others{{{9000, 2000, 6000, there}}};
    EXPECT_EQ(rule.follow({6000, 0, 0, 0}, 9000, others), most - there);
  }
}

TEST(SharedBudget, WaitsOnlyAWhileForOneThatDoesNotLeave)
{
  auto_budget rule{most, least};
  std::array<budget_share, 1> const others{{{9000, 6000, 6000}}};
  int looks = 1;
  while (rule.follow({6000, 0, 0, 0}, 9000, others) < most / 2 && looks < 100) {
    ++looks;
  }
  EXPECT_EQ(looks, 25);
}

TEST(SharedBudget, OneThatTakesABlockAndGivesItBackDoesNotLeave)
{
  for (int const every : {1, 2, 5, 20}) {  // looks
    auto_budget rule{most, least};
    int looks = 0;
    for (std::size_t budget = 0; budget < most / 2 && looks < 1000; ++looks) {
      auto const there = looks / every % 2 == 0 ? 6000U : 5999U;
      std::array<budget_share, 1> const others{{{9000, there, 6000}}};
      budget = rule.follow({6000, 0, 0, 0}, 9000, others);
    }
    EXPECT_EQ(looks, every + 25);  // it gave back once
  }
}

TEST(SharedBudget, IsWaitedForAsLongAsItLeavesMoreAndMore)
{
  auto_budget rule{most, least};
  for (int look = 0; look < 100; ++look) {
    auto const there = static_cast<std::size_t>(6000 - look / 20 * 10 + look % 2);
    std::array<budget_share, 1> const others{{{9000, there, 6000}}};
    EXPECT_LT(rule.follow({6000, 0, 0, 0}, 9000, others), most / 2);
  }
}

TEST(SharedBudget, WhatOthersWhoAgreeHoldIsNotHidden)
{
  auto_budget rule{most, least};
  std::array<budget_share, 1> const others{{{100, 100, 4000}}};
  EXPECT_EQ(rule.follow({5000, 0, 1000, 1000}, 9000, others), 6300U);
  EXPECT_EQ(rule.hidden_bytes(), 0U);
  // A third one, who agrees with nobody, is; but not before it is sure that it is no other.
  for (int look = 0; look < 31; ++look) {
    EXPECT_EQ(rule.follow({6400, 0, 1000, 1000}, 9000, others), 6300U);
  }
  EXPECT_EQ(rule.follow({6400, 0, 1000, 1000}, 9000, others), 4900U);
  EXPECT_EQ(rule.hidden_bytes(), 1400U);
}

TEST_F(AutoBudget, WhatAnotherHasTakenSinceItLookedIsNotHidden)
{
  std::array<budget_share, 1> others{{{9000, 100, 1000}}};
  static_cast<void>(rule.follow({4000, 0, 1000, 1000}, 9000, others));  // it has 3000 by now
  others[0] = {9000, 3000, 3000};
  static_cast<void>(rule.follow({6400, 0, 3200, 3400}, 9000, others));  // all of it is used
  EXPECT_EQ(rule.hidden_bytes(), 0U);
}

TEST(SharedBudget, IsAllAgainWhenTheOthersAreGone)
{
  auto_budget rule{most, least};
  std::array<budget_share, 1> const others{{{9000, 100, 100}}};
  EXPECT_EQ(rule.follow({200, 0, 100, 100}, 9000, others), most / 2);
  EXPECT_EQ(rule.follow({100, 0, 100, 100}), most);
}

}  // namespace
}  // namespace rmm_uvm

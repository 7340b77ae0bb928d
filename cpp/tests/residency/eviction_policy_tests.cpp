// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Who leaves first, by policy; and when a predictor is believed.
#include <rmm_uvm/residency/eviction_policy.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

constexpr use_tick now = 100;

[[nodiscard]] block_record block(use_tick arrived, use_tick used, use_tick next_use)
{
  block_record record;
  record.arrived  = arrived;
  record.touched  = used;
  record.next_use = next_use;
  return record;
}

/** @brief True when the first leaves before the second. */
[[nodiscard]] bool before(eviction_policy policy,
                          block_record const& first,
                          block_record const& second,
                          bool foresees = true)
{
  return leaving_key(policy, first, now, foresees) > leaving_key(policy, second, now, foresees);
}

TEST(EvictionPolicy, FifoLooksAtArrivalAlone)
{
  EXPECT_TRUE(before(eviction_policy::fifo, block(10, 99, 101), block(20, 30, no_use)));
  EXPECT_FALSE(before(eviction_policy::fifo, block(20, 30, no_use), block(10, 99, 101)));
}

TEST(EvictionPolicy, LruLooksAtTheLastUseAlone)
{
  EXPECT_TRUE(before(eviction_policy::lru, block(20, 30, 101), block(10, 99, no_use)));
  EXPECT_FALSE(before(eviction_policy::lru, block(10, 99, no_use), block(20, 30, 101)));
}

TEST(EvictionPolicy, RepeatLetsGoFirstOfWhatIsUsedLast)
{
  EXPECT_TRUE(before(eviction_policy::repeat, block(90, 99, 900), block(10, 20, 101)));
  EXPECT_TRUE(before(eviction_policy::repeat, block(90, 99, no_use), block(10, 20, 900)));
  EXPECT_FALSE(before(eviction_policy::repeat, block(10, 20, 101), block(90, 99, 900)));
}

TEST(EvictionPolicy, WhatWasJustHandedOutStaysUntilItIsWritten)
{
  auto fresh      = block(99, never_used, no_use);
  fresh.allocated = 99;
  EXPECT_TRUE(before(eviction_policy::repeat, block(10, 20, 101), fresh));
  fresh.allocated = 90;
  EXPECT_TRUE(before(eviction_policy::repeat, fresh, block(10, 20, 101)));
}

TEST(EvictionPolicy, RepeatJudgesABlockOfWhichNothingIsKnownByItsLastUse)
{
  EXPECT_TRUE(before(eviction_policy::repeat, block(90, 99, no_use), block(10, 20, unknown_use)));
  EXPECT_TRUE(before(eviction_policy::repeat, block(10, 20, unknown_use), block(90, 95, 150)));
  EXPECT_TRUE(before(eviction_policy::repeat, block(10, 20, 190), block(90, 95, unknown_use)));
  EXPECT_FALSE(before(eviction_policy::correlation, block(1, 1, 101), block(9, 9, unknown_use)));
}

TEST(EvictionPolicy, RepeatJudgesAnOverdueBlockByItsLastUse)
{
  EXPECT_TRUE(before(eviction_policy::repeat, block(10, 20, 50), block(10, 95, 150)));
  EXPECT_TRUE(before(eviction_policy::repeat, block(10, 95, 190), block(10, 95, 50)));
}

TEST(EvictionPolicy, CorrelationKeepsWhatIsExpected)
{
  EXPECT_TRUE(before(eviction_policy::correlation, block(99, 99, no_use), block(1, 1, 101)));
  EXPECT_TRUE(before(eviction_policy::correlation, block(99, 99, 50), block(1, 1, 101)));
  EXPECT_TRUE(before(eviction_policy::correlation, block(1, 99, 101), block(2, 1, 101)));
}

TEST(EvictionPolicy, WithoutBeliefInThePredictorItIsLru)
{
  for (auto const policy : {eviction_policy::repeat, eviction_policy::correlation}) {
    EXPECT_TRUE(before(policy, block(20, 30, 101), block(10, 99, no_use), false));
    EXPECT_FALSE(before(policy, block(10, 99, no_use), block(20, 30, 101), false));
  }
}

TEST(EvictionPolicy, WhatIsExpectedLaterIsLikelyUnusedUntilThen)
{
  EXPECT_TRUE(is_likely_unused(block(1, 99, 140), now, 140));
  EXPECT_FALSE(is_likely_unused(block(1, 99, 139), now, 140));
}

TEST(EvictionPolicy, WhatLayUnusedForLongIsLikelyUnusedForAnEighthOfThat)
{
  for (auto const unknown : {unknown_use, no_use, use_tick{now - 1}}) {
    EXPECT_TRUE(is_likely_unused(block(1, 20, unknown), now, 110));
    EXPECT_FALSE(is_likely_unused(block(1, 21, unknown), now, 110));
  }
}

TEST(EvictionPolicy, WhatIsFreedLaterIsLikelyUnusedIfItWasForAsLongAsItIsUntilThen)
{
  auto const lives = [](use_tick used, use_tick freed) {
    auto one = block(1, used, unknown_use);
    one.expect(freed, true);
    return is_likely_unused(one, now, 110);
  };
  EXPECT_TRUE(lives(90, 110));
  EXPECT_FALSE(lives(91, 110));  // kernels that use it may go on
  EXPECT_FALSE(lives(1, 109));   // it would leave for nothing
  EXPECT_TRUE(lives(20, 99));    // it should be gone: as if nothing were known
  EXPECT_FALSE(lives(21, 99));
}

TEST(EvictionPolicy, WhatIsFreedLaterIsJudgedByItsLastUse)
{
  auto freed = block(1, 60, unknown_use);
  freed.expect(101, true);
  EXPECT_EQ(leaving_key(eviction_policy::repeat, freed, now, true), 40U);
  EXPECT_EQ(freed.expected_use(), unknown_use);
  freed.expect(120);
  EXPECT_EQ(leaving_key(eviction_policy::repeat, freed, now, true), 20U);
}

TEST(EvictionPolicy, OnlyPoliciesThatForeseeHaveAPredictor)
{
  EXPECT_EQ(make_predictor(eviction_policy::fifo), nullptr);
  EXPECT_EQ(make_predictor(eviction_policy::lru), nullptr);
  EXPECT_NE(make_predictor(eviction_policy::repeat), nullptr);
  EXPECT_NE(make_predictor(eviction_policy::correlation), nullptr);
}

TEST(PredictionSwitch, TurnsOnAboveAndOffBelowAndNotInBetween)
{
  prediction_switch belief;
  EXPECT_FALSE(belief.update({10, 10}));  // too few
  EXPECT_FALSE(belief.update({50, 100}));
  EXPECT_TRUE(belief.update({61, 100}));
  EXPECT_TRUE(belief.update({50, 100}));
  EXPECT_FALSE(belief.update({39, 100}));
  EXPECT_EQ(belief.switched_off(), 1U);
  EXPECT_FALSE(belief.update({50, 100}));
}

}  // namespace
}  // namespace rmm_uvm

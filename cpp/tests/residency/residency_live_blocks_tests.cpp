// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How many bytes of blocks have live contents, at most since somebody asked last.
#include "residency_manager_fixture.hpp"

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyManager;

class ResidencyLiveBlocks : public ResidencyManager {
 protected:
  void free_range(memory_range range) { manager->on_free(range, stream); }
};

TEST_F(ResidencyLiveBlocks, TheyCountWhereverTheyAreUntilTheyDie)
{
  make();
  EXPECT_EQ(manager->take_live_block_peak(), 0U);
  reuse(at(0, 4));
  EXPECT_EQ(manager->take_live_block_peak(), blocks(4));
  EXPECT_EQ(manager->evict(at(1)), blocks(1));
  EXPECT_EQ(manager->take_live_block_peak(), blocks(4));
  free(0, 4);
  EXPECT_EQ(manager->take_live_block_peak(), 0U);
}

TEST_F(ResidencyLiveBlocks, WhatLivedBetweenTwoLooksIsThePeakOfTheNextOne)
{
  make();
  reuse(at(0, 2));
  static_cast<void>(manager->take_live_block_peak());
  reuse(at(2, 5));
  free(2, 5);
  EXPECT_EQ(manager->take_live_block_peak(), blocks(7));
  EXPECT_EQ(manager->take_live_block_peak(), blocks(2));
}

TEST_F(ResidencyLiveBlocks, AlsoWhereAllWasConfirmedToBeThere)
{
  make();
  reuse(at(0, 6));
  free(0, 6);
  reuse(at(0, 2));
  reuse(at(8, 24));  // past the budget from here on
  free(8, 24);
  touch(0, 2);
  ASSERT_TRUE(manager->confirm_present(stream));
  static_cast<void>(manager->take_live_block_peak());
  reuse(at(2, 3));
  free(2, 3);
  EXPECT_EQ(manager->take_live_block_peak(), blocks(5));
}

TEST_F(ResidencyLiveBlocks, APartOfABlockCountsAsAllOfIt)
{
  make();
  auto part = at(0, 2);
  part.address += part.bytes / 4;
  part.bytes /= 2;  // the second half of one, and the first half of the next
  reuse(part);
  EXPECT_EQ(manager->take_live_block_peak(), blocks(2));
  free_range(part);
  EXPECT_EQ(manager->take_live_block_peak(), 0U);
}

TEST_F(ResidencyLiveBlocks, WhatMayBeLongerThanItsLikesCountsAsFarAsItWasBrought)
{
  make();
  reuse(at(0, 8), blocks(3));
  EXPECT_EQ(manager->take_live_block_peak(), blocks(3));
}

TEST_F(ResidencyLiveBlocks, LessThanA64thOfTheBudgetIsNotLookedAt)
{
  make();
  memory_range const little{at(0).address, budget / 64 - 1};
  reuse(little);
  free_range(little);
  EXPECT_EQ(manager->take_live_block_peak(), 0U);
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How many bytes of blocks have live contents: now, and at most since somebody asked last.
#include "residency_manager_fixture.hpp"

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyManager;

class ResidencyLiveBlocks : public ResidencyManager {
 protected:
  void make_asked()
  {
    make();
    static_cast<void>(manager->take_live_blocks(true));
  }
  [[nodiscard]] std::size_t now() { return manager->take_live_blocks(false).now; }
  [[nodiscard]] std::size_t peak() { return manager->take_live_blocks(false).peak; }
  void free_range(memory_range range) { manager->on_free(range, stream); }
};

TEST_F(ResidencyLiveBlocks, TheyCountWhereverTheyAreUntilTheyDie)
{
  make_asked();
  EXPECT_EQ(peak(), 0U);
  reuse(at(0, 4));
  EXPECT_EQ(peak(), blocks(4));
  EXPECT_EQ(manager->evict(at(1)), blocks(1));
  EXPECT_EQ(now(), blocks(4));
  free(0, 4);
  EXPECT_EQ(peak(), 0U);
}

TEST_F(ResidencyLiveBlocks, WhatIsAwayCountsAsLongAsItIsUsedInEachRound)
{
  make_asked();
  reuse(at(0, 4));
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  EXPECT_EQ(manager->take_live_blocks(true).now, blocks(4));  // used in the round before
  EXPECT_EQ(manager->take_live_blocks(true).now, blocks(2));
  touch(1, 1);  // comes back
  EXPECT_EQ(manager->evict(at(1)), blocks(1));
  EXPECT_EQ(now(), blocks(3));
}

TEST_F(ResidencyLiveBlocks, WhatBelongsToTheHostAndIsThereDoesNotCount)
{
  make_asked();
  reuse(at(0, 4));
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  static_cast<void>(adviser.advise(at(0, 2), {std::nullopt, preferred_place::host}));
  EXPECT_EQ(now(), blocks(2));
}

TEST_F(ResidencyLiveBlocks, WhatLivedBetweenTwoLooksIsThePeakOfTheNextOne)
{
  make_asked();
  reuse(at(0, 2));
  EXPECT_EQ(peak(), blocks(2));
  reuse(at(2, 5));
  free(2, 5);
  auto const found = manager->take_live_blocks(false);
  EXPECT_EQ(found.now, blocks(2));
  EXPECT_EQ(found.peak, blocks(7));
  EXPECT_EQ(peak(), blocks(2));
}

TEST_F(ResidencyLiveBlocks, AlsoWhereAllWasConfirmedToBeThere)
{
  make_asked();
  reuse(at(0, 6));
  free(0, 6);
  reuse(at(0, 2));
  reuse(at(8, 24));  // past the budget from here on
  free(8, 24);
  touch(0, 2);
  ASSERT_TRUE(manager->confirm_present(stream));
  static_cast<void>(peak());
  reuse(at(2, 3));
  free(2, 3);
  EXPECT_EQ(peak(), blocks(5));
}

TEST_F(ResidencyLiveBlocks, NobodyLooksBeforeSomebodyAsked)
{
  make();
  reuse(at(0, 5));
  free(0, 5);
  EXPECT_EQ(peak(), 0U);
}

TEST_F(ResidencyLiveBlocks, APartOfABlockCountsAsAllOfIt)
{
  make_asked();
  auto part = at(0, 2);
  part.address += part.bytes / 4;
  part.bytes /= 2;  // the second half of one, and the first half of the next
  reuse(part);
  EXPECT_EQ(peak(), blocks(2));
  free_range(part);
  EXPECT_EQ(peak(), 0U);
}

TEST_F(ResidencyLiveBlocks, WhatMayBeLongerThanItsLikesCountsAsFarAsItWasBrought)
{
  make_asked();
  reuse(at(0, 8), blocks(3));
  EXPECT_EQ(peak(), blocks(3));
}

TEST_F(ResidencyLiveBlocks, EachTimeThatA64thOfTheBudgetWasAllocatedItIsLookedAt)
{
  make_asked();
  memory_range const half{at(0).address, budget / 128};
  reuse(half);
  free_range(half);
  EXPECT_EQ(peak(), 0U);
  memory_range const other{at(1).address, budget / 128};
  reuse(half);
  reuse(other);
  free_range(other);
  free_range(half);
  EXPECT_EQ(peak(), blocks(2));
}

}  // namespace
}  // namespace rmm_uvm

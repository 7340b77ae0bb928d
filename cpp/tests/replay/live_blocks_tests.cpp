// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/replay/live_blocks.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace rmm_uvm::replay {
namespace {

using tests::blocks;
using numbers = std::vector<std::size_t>;

/** @brief A range that begins `offset` bytes into its first block. */
[[nodiscard]] constexpr memory_range from(std::size_t offset, std::size_t bytes)
{
  return {blocks(1000) + offset, bytes};
}

TEST(LiveBlocks, BlockDiesWithItsLastLiveByte)
{
  live_blocks live{4};
  ASSERT_TRUE(live.allocate(0, from(0, blocks(1) + 256)));    // block 0 and a little of 1
  ASSERT_TRUE(live.allocate(1, from(256, blocks(1) - 256)));  // the rest of 1
  ASSERT_TRUE(live.free(0, from(0, blocks(1) + 256)));
  EXPECT_EQ(live.take_dead(), numbers{0});
  ASSERT_TRUE(live.free(1, from(256, blocks(1) - 256)));
  EXPECT_EQ(live.take_dead(), numbers{1});
  EXPECT_EQ(live.live_bytes(), 0U);
}

TEST(LiveBlocks, BlockThatNeverLivedIsNotDead)
{
  live_blocks live{4};
  EXPECT_TRUE(live.take_dead().empty());
}

TEST(LiveBlocks, BlockThatLivesAgainIsNotTaken)
{
  live_blocks live{4};
  ASSERT_TRUE(live.allocate(0, from(0, blocks(3))));
  ASSERT_TRUE(live.free(0, from(0, blocks(3))));
  ASSERT_TRUE(live.allocate(1, from(0, 256)));
  EXPECT_EQ(live.take_dead(), (numbers{0, 2}));
  ASSERT_TRUE(live.free(1, from(0, 256)));
  EXPECT_EQ(live.take_dead(), numbers{1});
}

TEST(LiveBlocks, DeadBlocksAreTakenOnce)
{
  live_blocks live{4};
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(live.allocate(2, from(0, blocks(1))));
    ASSERT_TRUE(live.free(2, from(0, blocks(1))));
  }
  EXPECT_EQ(live.take_dead(), numbers{2});
  EXPECT_TRUE(live.take_dead().empty());
}

TEST(LiveBlocks, OnlyTakenBlocksAreReused)
{
  live_blocks live{6};
  ASSERT_TRUE(live.allocate(1, from(0, blocks(2))));
  ASSERT_TRUE(live.free(1, from(0, blocks(2))));
  EXPECT_TRUE(live.reuse(0, from(0, blocks(6))).empty());  // dead, and nobody took them
  ASSERT_EQ(live.take_dead(), (numbers{1, 2}));
  EXPECT_EQ(live.reuse(2, from(0, 256)), numbers{2});
  EXPECT_EQ(live.reuse(0, from(0, blocks(6))), numbers{1});
}

TEST(LiveBlocks, PeakIsTheMostBytesAtOnce)
{
  live_blocks live{4};
  ASSERT_TRUE(live.allocate(0, from(0, 1000)));
  ASSERT_TRUE(live.allocate(1, from(0, 500)));
  ASSERT_TRUE(live.free(0, from(0, 1000)));
  ASSERT_TRUE(live.allocate(0, from(0, 700)));
  EXPECT_EQ(live.live_bytes(), 1200U);
  EXPECT_EQ(live.peak_live_bytes(), 1500U);
}

TEST(LiveBlocks, MoreThanABlockHoldsIsRefused)
{
  live_blocks live{2};
  ASSERT_TRUE(live.allocate(0, from(0, blocks(1))));
  EXPECT_FALSE(live.allocate(0, from(0, 1)));
}

TEST(LiveBlocks, FreeOfWhatIsNotLiveIsRefused)
{
  live_blocks live{2};
  EXPECT_FALSE(live.free(0, from(0, 1)));
  ASSERT_TRUE(live.allocate(0, from(0, 256)));
  EXPECT_FALSE(live.free(1, from(0, 256)));
}

}  // namespace
}  // namespace rmm_uvm::replay

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/va_block.hpp>

#include <gtest/gtest.h>

#include <array>

namespace rmm_uvm::sim {
namespace {

TEST(MaskOf, HoldsExactlyTheAskedPages)
{
  auto const mask = mask_of(3, 7);
  for (std::size_t page = 0; page < pages_per_block; ++page) {
    EXPECT_EQ(mask.test(page), page >= 3 && page < 7) << page;
  }
}

TEST(MaskOf, EmptyAndFull)
{
  EXPECT_TRUE(mask_of(5, 5).none());
  EXPECT_TRUE(mask_of(6, 5).none());
  EXPECT_TRUE(mask_of(0, pages_per_block).all());
}

TEST(ChunkList, HandsOutVictimsInTheOrderOfArrival)
{
  std::array<va_block, 3> blocks{};
  chunk_list list;
  EXPECT_EQ(list.head(), nullptr);
  for (auto& block : blocks) {
    list.push_back(block);
  }
  for (auto& block : blocks) {
    EXPECT_EQ(list.head(), &block);
    list.remove(block);
  }
  EXPECT_EQ(list.head(), nullptr);
}

TEST(ChunkList, RemovingFromTheMiddleAndTheEndKeepsTheRest)
{
  std::array<va_block, 4> blocks{};
  chunk_list list;
  for (auto& block : blocks) {
    list.push_back(block);
  }
  list.remove(blocks[1]);
  list.remove(blocks[3]);
  list.push_back(blocks[1]);
  for (auto const index : {0U, 2U, 1U}) {
    EXPECT_EQ(list.head(), &blocks[index]);
    list.remove(*list.head());
  }
  EXPECT_EQ(list.head(), nullptr);
}

}  // namespace
}  // namespace rmm_uvm::sim

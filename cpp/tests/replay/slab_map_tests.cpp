// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/replay/slab_map.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace rmm_uvm::replay {
namespace {

using tests::block_range;
using tests::blocks;

constexpr std::uintptr_t recorded = std::uintptr_t{1} << 40U;
constexpr std::uintptr_t device   = std::uintptr_t{1} << 44U;

/** @brief Slabs of 4 and of 2 blocks, 10 blocks apart; on the device in the other order. */
[[nodiscard]] slab_map two_slabs()
{
  slab_map slabs;
  slabs.add(block_range(recorded, 0, 4), device + blocks(100));
  slabs.add(block_range(recorded, 14, 2), device);
  return slabs;
}

TEST(SlabMap, RangeLiesAtTheSameOffsetOfItsSlab)
{
  auto const slabs = two_slabs();
  auto const first = slabs.locate({recorded + blocks(1) + 256, 512});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->range, (memory_range{device + blocks(101) + 256, 512}));
  EXPECT_EQ(first->first_block, 1U);
  auto const second = slabs.locate(block_range(recorded, 14, 2));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->range, block_range(device, 0, 2));
  EXPECT_EQ(second->first_block, 4U);
}

TEST(SlabMap, RangeThatNoSlabHoldsAsAWholeIsNotFound)
{
  auto const slabs = two_slabs();
  EXPECT_FALSE(slabs.locate({recorded - 1, 1}).has_value());
  EXPECT_FALSE(slabs.locate({recorded + blocks(4), 1}).has_value());
  EXPECT_FALSE(slabs.locate({recorded + blocks(4) - 1, 2}).has_value());
  EXPECT_FALSE(slabs.locate({recorded + blocks(16), 1}).has_value());
  EXPECT_FALSE(slabs.locate({recorded, std::numeric_limits<std::size_t>::max()}).has_value());
  EXPECT_FALSE(slab_map{}.locate({recorded, 1}).has_value());
}

TEST(SlabMap, BlocksAreNumberedThroughAllSlabs)
{
  auto const slabs = two_slabs();
  EXPECT_EQ(slabs.block_count(), 6U);
  EXPECT_EQ(slabs.address_of(0), device + blocks(100));
  EXPECT_EQ(slabs.address_of(3), device + blocks(103));
  EXPECT_EQ(slabs.address_of(4), device);
  EXPECT_EQ(slabs.address_of(5), device + blocks(1));
  for (std::size_t block = 0; block < 6; ++block) {
    EXPECT_EQ(slabs.begins_slab(block), block == 0 || block == 4) << block;
  }
}

TEST(SlabMap, SlabThatIsNotOfWholeBlocksIsRefused)
{
  slab_map slabs;
  EXPECT_THROW(slabs.add({recorded, 0}, device), std::invalid_argument);
  EXPECT_THROW(slabs.add({recorded, blocks(1) + 1}, device), std::invalid_argument);
  EXPECT_THROW(slabs.add({recorded + 256, blocks(1)}, device), std::invalid_argument);
  EXPECT_THROW(slabs.add({recorded, blocks(1)}, device + 256), std::invalid_argument);
  EXPECT_EQ(slabs.block_count(), 0U);
}

TEST(SlabMap, SlabBelowTheLastOrPastTheAddressSpaceIsRefused)
{
  auto slabs = two_slabs();
  EXPECT_THROW(slabs.add(block_range(recorded, 8, 1), device), std::invalid_argument);
  EXPECT_THROW(slabs.add(block_range(recorded, 15, 4), device), std::invalid_argument);
  auto const last = va_block_floor(std::numeric_limits<std::uintptr_t>::max());
  EXPECT_THROW(slabs.add({last, blocks(2)}, device), std::invalid_argument);
  slabs.add(block_range(recorded, 16, 1), device);  // right behind the last is fine
  EXPECT_EQ(slabs.block_count(), 7U);
}

}  // namespace
}  // namespace rmm_uvm::replay

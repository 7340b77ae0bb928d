// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/address_space.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <utility>

namespace rmm_uvm::sim {
namespace {

TEST(AddressRange, IsAlignedToBlocks)
{
  address_range const range{page_bytes, false};
  EXPECT_NE(range.address(), 0U);
  EXPECT_EQ(range.address() % va_block_bytes, 0U);
}

TEST(AddressRange, WithBackingIsZeroedAndWritable)
{
  address_range const range{va_block_bytes, true};
  auto* const bytes = reinterpret_cast<unsigned char*>(range.address());
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[va_block_bytes - 1], 0);
  std::memset(bytes, 7, va_block_bytes);
  EXPECT_EQ(bytes[va_block_bytes - 1], 7);
}

TEST(AddressRange, WithoutBackingReservesFarMoreThanThereIs)
{
  address_range const range{std::size_t{141} << 30U, false};
  EXPECT_NE(range.address(), 0U);
}

TEST(AddressRange, IsZeroWhenTheSystemRefuses)
{
  address_range const range{std::numeric_limits<std::size_t>::max() / 4, false};
  EXPECT_EQ(range.address(), 0U);
}

TEST(AddressRange, IsZeroWhenTheLengthWouldOverflow)
{
  address_range const range{std::numeric_limits<std::size_t>::max() - page_bytes, false};
  EXPECT_EQ(range.address(), 0U);
}

TEST(AddressRange, MovedFromHoldsNothing)
{
  address_range first{va_block_bytes, true};
  auto const address = first.address();
  address_range second{std::move(first)};
  EXPECT_EQ(first.address(), 0U);  // NOLINT: the state after a move is what is tested
  EXPECT_EQ(second.address(), address);
  address_range third;
  third = std::move(second);
  EXPECT_EQ(third.address(), address);
}

TEST(AddressRangeDeathTest, WithoutBackingFaultsWhenDereferenced)
{
  address_range const range{va_block_bytes, false};
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(range.address()) = 1, "");
}

}  // namespace
}  // namespace rmm_uvm::sim

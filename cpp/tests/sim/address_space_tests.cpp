// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/address_space.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <utility>

namespace rmm_uvm::sim {
namespace {

TEST(AddressRange, IsAlignedToBlocks)
{
  address_range const range{page_bytes, backing_kind::none};
  EXPECT_NE(range.address(), 0U);
  EXPECT_EQ(range.address() % va_block_bytes, 0U);
}

TEST(AddressRange, WithBackingIsZeroedAndWritable)
{
  address_range const range{va_block_bytes, backing_kind::own};
  auto* const bytes = reinterpret_cast<unsigned char*>(range.address());
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[va_block_bytes - 1], 0);
  std::memset(bytes, 7, va_block_bytes);
  EXPECT_EQ(bytes[va_block_bytes - 1], 7);
}

TEST(AddressRange, WithoutBackingReservesFarMoreThanThereIs)
{
  address_range const range{std::size_t{141} << 30U, backing_kind::none};
  EXPECT_NE(range.address(), 0U);
}

TEST(AddressRange, IsZeroWhenTheSystemRefuses)
{
  address_range const range{std::numeric_limits<std::size_t>::max() / 4, backing_kind::none};
  EXPECT_EQ(range.address(), 0U);
}

TEST(AddressRange, IsZeroWhenTheLengthWouldOverflow)
{
  address_range const range{std::numeric_limits<std::size_t>::max() - page_bytes,
                            backing_kind::none};
  EXPECT_EQ(range.address(), 0U);
}

TEST(AddressRange, MovedFromHoldsNothing)
{
  address_range first{va_block_bytes, backing_kind::own};
  auto const address = first.address();
  address_range second{std::move(first)};
  EXPECT_EQ(first.address(), 0U);  // NOLINT: the state after a move is what is tested
  EXPECT_EQ(second.address(), address);
  address_range third;
  third = std::move(second);
  EXPECT_EQ(third.address(), address);
}

TEST(AddressRange, WithSharedBackingIsMappedTwice)
{
  address_range const range{3 * page_bytes, backing_kind::shared};
  ASSERT_NE(range.address(), 0U);
  EXPECT_EQ(range.address() % va_block_bytes, 0U);
  auto const second = address_range::of(range.descriptor(), 3 * page_bytes);
  ASSERT_NE(second.address(), 0U);
  EXPECT_NE(second.address(), range.address());
  EXPECT_EQ(second.descriptor(), -1);
  *reinterpret_cast<unsigned char*>(range.address() + 3 * page_bytes - 1) = 9;
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(second.address() + 3 * page_bytes - 1), 9);
}

TEST(AddressRange, WithSharedBackingCanBeNeitherGrownNorShrunk)
{
  address_range const range{page_bytes, backing_kind::shared};
  EXPECT_NE(::ftruncate(range.descriptor(), 0), 0);
  EXPECT_NE(::ftruncate(range.descriptor(), 2 * page_bytes), 0);
}

TEST(AddressRange, OfAClosedDescriptorIsZero)
{
  EXPECT_EQ(address_range::of(-1, page_bytes).address(), 0U);
}

TEST(AddressRange, ClosesItsDescriptor)
{
  int descriptor = -1;
  {
    address_range const range{page_bytes, backing_kind::shared};
    descriptor = range.descriptor();
    EXPECT_GE(::fcntl(descriptor, F_GETFD), 0);
  }
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
}

TEST(AddressRangeDeathTest, WithoutBackingFaultsWhenDereferenced)
{
  address_range const range{va_block_bytes, backing_kind::none};
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(range.address()) = 1, "");
}

}  // namespace
}  // namespace rmm_uvm::sim

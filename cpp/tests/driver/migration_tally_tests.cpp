// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/driver/migration_tally.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::slab_address;

[[nodiscard]] std::uint64_t remembered_bytes(migration_tally const& tally)
{
  std::uint64_t sum = 0;
  for (auto const& block : tally.busiest(1'000'000)) {
    sum += block.host_to_device_bytes + block.device_to_host_bytes;
  }
  return sum;
}

TEST(MigrationTally, SumsByDirectionAndCause)
{
  migration_tally tally;
  tally.to_device(migration_cause::user, {slab_address, 4096});
  tally.to_device(migration_cause::user, {slab_address, 4096});
  tally.to_host(migration_cause::eviction, {slab_address, 8192});
  tally.count(&cause_totals::cpu_faults, 3);
  auto const totals = tally.totals();
  EXPECT_EQ(totals.host_to_device_bytes[static_cast<std::size_t>(migration_cause::user)], 8192U);
  EXPECT_EQ(totals.device_to_host_bytes[static_cast<std::size_t>(migration_cause::eviction)],
            8192U);
  EXPECT_EQ(totals.cpu_faults, 3U);
  tally.clear();
  EXPECT_EQ(tally.totals().cpu_faults, 0U);
  EXPECT_TRUE(tally.busiest(1).empty());
}

TEST(MigrationTally, CauseBeyondTheKnownIsUnknown)
{
  migration_tally tally;
  tally.to_device(static_cast<migration_cause>(200), {slab_address, 4096});
  EXPECT_EQ(tally.totals().host_to_device_bytes[0], 4096U);
}

TEST(MigrationTally, MoveOverABlockBoundaryIsSplit)
{
  migration_tally tally;
  tally.to_host(migration_cause::user, {slab_address + blocks(1) - 4096, 12288});
  auto const found = tally.busiest(10);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].address, slab_address + blocks(1));
  EXPECT_EQ(found[0].device_to_host_bytes, 8192U);
  EXPECT_EQ(found[1].address, slab_address);
  EXPECT_EQ(found[1].device_to_host_bytes, 4096U);
}

TEST(MigrationTally, BusiestComeFirstAndNoMoreThanAskedFor)
{
  migration_tally tally;
  for (std::size_t index = 0; index < 10; ++index) {
    tally.to_device(migration_cause::user,
                    {block_range(slab_address, index, 1).address, 4096 * (index + 1)});
  }
  auto const found = tally.busiest(3);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].address, slab_address + blocks(9));
  EXPECT_EQ(found[2].address, slab_address + blocks(7));
  EXPECT_TRUE(tally.busiest(0).empty());
}

TEST(MigrationTally, TooManyBlocksForgetTheQuietOnesAndCountThem)
{
  migration_tally tally{8};
  std::uint64_t sum = 0;
  for (std::size_t index = 0; index < 9; ++index) {
    auto const bytes = 4096 * (index % 2 == 0 ? index + 1 : 1);
    tally.to_device(migration_cause::user, {slab_address + blocks(index), bytes});
    sum += bytes;
  }
  auto const found = tally.busiest(100);
  ASSERT_EQ(found.size(), 4U);  // half of the most
  EXPECT_EQ(found[0].address, slab_address + blocks(8));
  EXPECT_EQ(found[3].address, slab_address + blocks(2));
  EXPECT_EQ(remembered_bytes(tally) + tally.totals().forgotten_bytes, sum);
}

TEST(MigrationTally, BlocksThatAllMovedAlikeStayBoundedToo)
{
  migration_tally tally{100};
  for (std::size_t index = 0; index < 1000; ++index) {
    tally.to_device(migration_cause::user, {slab_address + blocks(index), 4096});
  }
  EXPECT_LE(tally.busiest(1000).size(), 100U);
  EXPECT_EQ(remembered_bytes(tally) + tally.totals().forgotten_bytes, 1000U * 4096U);
  EXPECT_EQ(tally.totals().host_to_device_bytes[1], 1000U * 4096U);
}

TEST(MigrationCause, EveryOneHasAName)
{
  EXPECT_STREQ(to_string(migration_cause::eviction), "eviction");
  EXPECT_STREQ(to_string(static_cast<migration_cause>(99)), "unknown");
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/ledger.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::slab_address;
using ranges = std::vector<memory_range>;

/** @brief A slab of four whole blocks. */
constexpr memory_range four_blocks{slab_address, blocks(4)};

TEST(Ledger, WithoutSlabsEverythingUnknownIsNotInDoubt)
{
  residency_ledger const ledger;
  EXPECT_TRUE(ledger.doubtful_runs(four_blocks, 1).empty());
  EXPECT_FALSE(ledger.slab_of(slab_address));
  EXPECT_EQ(ledger.slab_bytes(), 0U);
}

TEST(Ledger, NewSlabIsInDoubt)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  EXPECT_FALSE(ledger.all_on_device(1));
  EXPECT_EQ(ledger.doubtful_runs(four_blocks, 1), (ranges{four_blocks}));
  EXPECT_EQ(ledger.slab_bytes(), blocks(4));
}

TEST(Ledger, EmptySlabIsNotKept)
{
  residency_ledger ledger;
  ledger.add_slab({slab_address, 0});
  EXPECT_FALSE(ledger.slab_of(slab_address));
  ledger.add_slab(four_blocks);  // its place is still free
  EXPECT_EQ(ledger.slab_of(slab_address), four_blocks);
}

TEST(Ledger, SlabOfFindsFirstAndLastByteOnly)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  EXPECT_EQ(ledger.slab_of(slab_address), four_blocks);
  EXPECT_EQ(ledger.slab_of(four_blocks.end() - 1), four_blocks);
  EXPECT_FALSE(ledger.slab_of(four_blocks.end()));
  EXPECT_FALSE(ledger.slab_of(slab_address - 1));
}

TEST(Ledger, AllOnDeviceOnlyWhenEveryBlockOfEverySlabIsMarked)
{
  residency_ledger ledger;
  memory_range const other{slab_address + blocks(8), blocks(1)};
  ledger.add_slab(four_blocks);
  ledger.add_slab(other);
  ledger.mark_on_device(four_blocks, 1);
  EXPECT_FALSE(ledger.all_on_device(1));
  ledger.mark_on_device(other, 1);
  EXPECT_TRUE(ledger.all_on_device(1));
}

TEST(Ledger, NewEpochPutsEverythingInDoubtAgain)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device(four_blocks, 1);
  EXPECT_FALSE(ledger.all_on_device(2));
  EXPECT_EQ(ledger.doubtful_runs(four_blocks, 2), (ranges{four_blocks}));
}

TEST(Ledger, SlabAddedLaterEndsAllOnDevice)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device(four_blocks, 1);
  ledger.add_slab({slab_address + blocks(8), blocks(1)});
  EXPECT_FALSE(ledger.all_on_device(1));
}

TEST(Ledger, RemovingTheDoubtfulSlabRestoresAllOnDevice)
{
  residency_ledger ledger;
  memory_range const other{slab_address + blocks(8), blocks(1)};
  ledger.add_slab(four_blocks);
  ledger.add_slab(other);
  ledger.mark_on_device(four_blocks, 1);
  ledger.remove_slab(other.address);
  EXPECT_TRUE(ledger.all_on_device(1));
  EXPECT_EQ(ledger.slab_bytes(), blocks(4));
}

TEST(Ledger, RemovingAMarkedSlabDoesNotVouchForTheOther)
{
  residency_ledger ledger;
  memory_range const other{slab_address + blocks(8), blocks(4)};
  ledger.add_slab(four_blocks);
  ledger.add_slab(other);
  ledger.mark_on_device(four_blocks, 1);
  ledger.remove_slab(four_blocks.address);
  EXPECT_FALSE(ledger.all_on_device(1));
  EXPECT_EQ(ledger.doubtful_runs(other, 1), (ranges{other}));
}

TEST(Ledger, RemovingAnUnknownSlabChangesNothing)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.remove_slab(slab_address + blocks(1));  // inside, but not its beginning
  EXPECT_EQ(ledger.slab_of(slab_address), four_blocks);
}

TEST(Ledger, BlocksPutInDoubtAreDoubtfulInTheSameEpoch)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device(four_blocks, 1);
  ledger.doubt({slab_address + blocks(1) + 256, blocks(1)});  // parts of blocks 1 and 2
  EXPECT_FALSE(ledger.all_on_device(1));
  EXPECT_EQ(ledger.doubtful_runs(four_blocks, 1), (ranges{{slab_address + blocks(1), blocks(2)}}));
  ledger.mark_on_device(four_blocks, 1);
  EXPECT_TRUE(ledger.all_on_device(1));
}

TEST(Ledger, DoubtAboutBlocksInDoubtChangesNothing)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device({slab_address, blocks(2)}, 1);
  ledger.doubt({slab_address + blocks(2), blocks(2)});
  ledger.doubt({slab_address + blocks(2), blocks(2)});
  ledger.mark_on_device({slab_address + blocks(2), blocks(2)}, 1);
  EXPECT_TRUE(ledger.all_on_device(1));
}

TEST(Ledger, DoubtOutsideAllSlabsChangesNothing)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device(four_blocks, 1);
  ledger.doubt({slab_address + blocks(4), blocks(1)});
  ledger.doubt({slab_address, 0});
  EXPECT_TRUE(ledger.all_on_device(1));
}

TEST(Ledger, MarkingCountsOnlyWholeBlocks)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  // From the middle of block 0 to the middle of block 3: blocks 1 and 2 lie wholly inside.
  ledger.mark_on_device({slab_address + va_block_bytes / 2, blocks(3)}, 1);
  EXPECT_EQ(ledger.doubtful_runs(four_blocks, 1),
            (ranges{block_range(slab_address, 0, 1), block_range(slab_address, 3, 1)}));
}

TEST(Ledger, MarkingLessThanABlockMarksNothing)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device({slab_address + 256, 4096}, 1);
  ledger.mark_on_device({slab_address, va_block_bytes - 1}, 1);
  EXPECT_EQ(ledger.doubtful_runs(four_blocks, 1), (ranges{four_blocks}));
}

TEST(Ledger, CutOffBlocksCountWhenTheRangeReachesTheSlabsEnds)
{
  // Begins and ends in the middle of a block: three windows, the outer two cut off.
  memory_range const slab{slab_address + va_block_bytes / 2, blocks(2)};
  residency_ledger ledger;
  ledger.add_slab(slab);
  ledger.mark_on_device({slab.address, va_block_bytes / 2}, 1);
  EXPECT_EQ(ledger.doubtful_runs(slab, 1),
            (ranges{{slab_address + blocks(1), blocks(1) + va_block_bytes / 2}}));
  ledger.mark_on_device({slab_address + blocks(1), blocks(1) + va_block_bytes / 2}, 1);
  EXPECT_TRUE(ledger.all_on_device(1));
}

TEST(Ledger, MarkingBeyondTheSlabIsCutOff)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device({slab_address, blocks(100)}, 1);
  EXPECT_TRUE(ledger.all_on_device(1));
}

TEST(Ledger, DoubtIsReportedInWholeBlocksAndJoined)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device(block_range(slab_address, 1, 1), 1);
  // One byte in block 0, all of 1 and 2, one byte of 3.
  memory_range const asked{slab_address + blocks(1) - 1, blocks(2) + 2};
  EXPECT_EQ(ledger.doubtful_runs(asked, 1),
            (ranges{block_range(slab_address, 0, 1), block_range(slab_address, 2, 2)}));
}

TEST(Ledger, StaleMarkNeverOverwritesANewerOne)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device(four_blocks, 5);
  ledger.mark_on_device(four_blocks, 4);  // a thread that was held up
  EXPECT_TRUE(ledger.all_on_device(5));
  EXPECT_TRUE(ledger.doubtful_runs(four_blocks, 5).empty());
}

TEST(Ledger, StaleMarkDoesNotSettleTheNewerEpoch)
{
  residency_ledger ledger;
  ledger.add_slab(four_blocks);
  ledger.mark_on_device(block_range(slab_address, 0, 1), 5);
  ledger.mark_on_device(four_blocks, 4);
  EXPECT_FALSE(ledger.all_on_device(5));
  EXPECT_FALSE(ledger.all_on_device(4));
}

}  // namespace
}  // namespace rmm_uvm

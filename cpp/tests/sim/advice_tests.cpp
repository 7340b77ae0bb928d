// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Advice: where pages belong, who accesses them, and what is read mostly.
// Figures are worked out from open-gpu-kernel-modules 580.142.
#include "../support/modelled.hpp"

#include <gtest/gtest.h>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;
using tests::modelled;

TEST(Advice, PreferredHostIsReadThroughAMapping)
{
  modelled given{4, 4};
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::preferred_location, -1).ok());
  given.touch(given.range, false);
  EXPECT_EQ(given.counters().to_device_bytes, 0U);
  EXPECT_EQ(given.counters().remote_bytes, blocks(4));
  ASSERT_TRUE(given.model.prefetch(given.range, 0, 0).ok());  // a call migrates all the same
  EXPECT_EQ(given.counters().to_device_bytes, blocks(4));
}

TEST(Advice, AccessedByReadsFromTheHostAndEvictedPagesDoNotComeBack)
{
  modelled given{2, 4};
  ASSERT_TRUE(given.model.advise(given.range, advice::accessed_by, 0).ok());
  given.touch(given.range);  // populated where they are first touched
  EXPECT_EQ(given.counters().evicted_blocks, 2U);
  auto const before = given.counters().to_device_bytes;
  given.touch(given.block(0, 2), false);
  EXPECT_EQ(given.counters().to_device_bytes, before);
  EXPECT_EQ(given.counters().remote_bytes, blocks(2));
  ASSERT_TRUE(given.model.advise(given.range, advice::unset_accessed_by, 0).ok());
  given.touch(given.block(0, 2), false);
  EXPECT_GT(given.counters().to_device_bytes, before);
}

TEST(Advice, FirstTouchAtThePreferredLocationPopulatesTheWholeBlock)
{
  modelled given{4, 4};
  ASSERT_TRUE(given.model.advise(given.range, advice::preferred_location, 0).ok());
  given.pages(given.range, {3});
  EXPECT_EQ(given.model.resident_bytes(given.block(0), 0), blocks(1));
}

TEST(Advice, ReadMostlyIsCopiedAndEvictedWithoutACopy)
{
  modelled given{2, 4};
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::read_mostly, -1).ok());
  given.touch(given.range, false);
  EXPECT_EQ(given.counters().evicted_blocks, 2U);
  EXPECT_EQ(given.counters().to_host_bytes, 0U);
  EXPECT_EQ(given.model.resident_bytes(given.range, -1), blocks(4));
}

TEST(Advice, WritingWhatIsReadMostlyTakesTheOtherCopiesAway)
{
  modelled given{4, 2};
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::read_mostly, -1).ok());
  given.touch(given.range, false);
  auto const faults = given.counters().gpu_faults;
  given.touch(given.range, true);
  EXPECT_GT(given.counters().gpu_faults, faults);
  EXPECT_EQ(given.model.resident_bytes(given.range, -1), 0U);
  EXPECT_EQ(given.model.resident_bytes(given.range, 0), blocks(2));
}

TEST(Advice, TakenBackLeavesTheCopyOfTheHost)
{
  modelled given{4, 2, 2};
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::read_mostly, -1).ok());
  given.touch(given.range, false, 0);
  given.touch(given.range, false, 1);
  ASSERT_TRUE(given.model.advise(given.range, advice::unset_read_mostly, -1).ok());
  EXPECT_EQ(given.model.resident_bytes(given.range, -1), blocks(2));
  EXPECT_EQ(given.model.resident_bytes(given.range, 0), 0U);
  EXPECT_EQ(given.model.resident_bytes(given.range, 1), 0U);
}

TEST(Advice, TakenBackLeavesOneCopyWhereItBelongsThatIsWrittenBack)
{
  modelled given{2, 4};
  ASSERT_TRUE(given.model.cpu_touch(given.block(0, 2), true).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::read_mostly, -1).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::preferred_location, 0).ok());
  given.touch(given.block(0, 2), false);
  EXPECT_EQ(given.model.resident_bytes(given.block(0, 2), -1), blocks(2));
  ASSERT_TRUE(given.model.advise(given.range, advice::unset_read_mostly, -1).ok());
  EXPECT_EQ(given.model.resident_bytes(given.block(0, 2), -1), 0U);
  given.touch(given.block(0, 2), true);
  given.touch(given.block(2, 2), true);
  EXPECT_EQ(given.counters().to_host_bytes, blocks(2));
}

TEST(Advice, ReadMostlyCopiesEvenWhatBelongsElsewhere)
{
  for (auto const other : {advice::preferred_location, advice::accessed_by}) {
    modelled given{4, 2};
    ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
    ASSERT_TRUE(given.model.advise(given.range, advice::read_mostly, -1).ok());
    ASSERT_TRUE(given.model.advise(given.range, other, other == advice::accessed_by ? 0 : -1).ok());
    given.touch(given.range, false);
    EXPECT_EQ(given.counters().remote_bytes, 0U);
    EXPECT_EQ(given.counters().to_device_bytes, blocks(2));
  }
}

TEST(Advice, PreferredLocationWithoutTheDriversPrefetcherBringsWhatFaulted)
{
  model_config config;
  config.driver.prefetch = false;
  modelled given{4, 4, 1, config};
  ASSERT_TRUE(given.model.advise(given.range, advice::preferred_location, 0).ok());
  given.pages(given.range, {3});
  EXPECT_EQ(given.model.resident_bytes(given.block(0), 0), page_bytes);
}

TEST(Advice, FirstAccessOfWhatBelongsToTheHostIsRemoteToo)
{
  modelled given{4, 2};
  ASSERT_TRUE(given.model.advise(given.range, advice::preferred_location, -1).ok());
  given.touch(given.range);  // populated on the host
  EXPECT_EQ(given.counters().remote_bytes, blocks(2));
  given.touch(given.range);
  EXPECT_EQ(given.counters().remote_bytes, blocks(4));
}

// Read mostly: what writing costs

TEST(ReadMostly, IsWrittenPageByPageAgainAndAgain)
{
  // A service makes the pages around a fault readable only, those too that were written before.
  auto const faults = [](bool advised, int passes) {
    model_config config;
    config.machine.duplicate_fraction = 0;
    modelled given{4, 1, 1, config};
    if (advised) { EXPECT_TRUE(given.model.advise(given.range, advice::read_mostly, 0).ok()); }
    for (int pass = 0; pass < passes; ++pass) {
      given.touch(given.range);
    }
    return given.counters().gpu_faults;
  };
  EXPECT_EQ(faults(true, 1), pages_per_block);
  // All but those that the last batch of the pass before wrote: 12 pages, then 100.
  EXPECT_EQ(faults(true, 3), 3 * pages_per_block - 12 - 100);
  EXPECT_EQ(faults(false, 1), 300U);  // the driver's prefetcher brings the others, to be written
  EXPECT_EQ(faults(false, 3), 300U);
}

TEST(ReadMostly, PageThatWasWrittenIsWrittenAgainForNothing)
{
  modelled given{4, 1};
  ASSERT_TRUE(given.model.advise(given.range, advice::read_mostly, 0).ok());
  given.pages(given.range, {7});
  auto const faults = given.counters().gpu_faults;
  given.pages(given.range, {7});
  EXPECT_EQ(given.counters().gpu_faults, faults);
  given.pages(given.range, {8});  // came beside it, to be read
  EXPECT_GT(given.counters().gpu_faults, faults);
}

TEST(ReadMostly, CpuWritesPageByPageWhatWasCopied)
{
  auto const faults = [](bool advised) {
    modelled given{4, 1};
    EXPECT_TRUE(given.model.cpu_touch(given.range, true).ok());
    if (advised) { EXPECT_TRUE(given.model.advise(given.range, advice::read_mostly, 0).ok()); }
    given.touch(given.range, false);
    auto const before = given.counters().cpu_faults;
    EXPECT_TRUE(given.model.cpu_touch(given.range, true).ok());
    EXPECT_EQ(given.model.resident_bytes(given.range, 0), 0U);
    return given.counters().cpu_faults - before;
  };
  EXPECT_EQ(faults(true), pages_per_block);
  EXPECT_EQ(faults(false), 6U);
}

TEST(ReadMostly, WriteTakesTimeForEachCopyThatGoes)
{
  constexpr double unmap_ns = 1e6;
  auto const nanoseconds    = [](unsigned readers, double each_ns) {
    model_config config;
    config.driver.prefetch  = false;
    config.machine.unmap_ns = each_ns;
    modelled given{4, 1, 4, config};
    EXPECT_TRUE(given.model.cpu_touch(given.range, true).ok());
    EXPECT_TRUE(given.model.advise(given.range, advice::read_mostly, 0).ok());
    for (unsigned gpu = 0; gpu < readers; ++gpu) {
      given.touch(given.range, false, gpu);
    }
    given.model.synchronize();
    auto const begin = given.model.now_ns();
    given.pages(given.range, {5});
    given.model.synchronize();
    return given.model.now_ns() - begin;
  };
  for (unsigned readers = 1; readers <= 4; ++readers) {  // GPU 0, which writes, others, the host
    auto const spent = nanoseconds(readers, unmap_ns) - nanoseconds(readers, 0);
    EXPECT_NEAR(spent, readers * unmap_ns, 1);
  }
}

TEST(ReadMostly, WrittenPageIsWhoWroteItWhereverItBelongs)
{
  modelled given{4, 1, 2};
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::read_mostly, 0).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::preferred_location, 1).ok());
  given.pages(given.range, {5});
  EXPECT_EQ(given.counters().remote_bytes, 0U);
  EXPECT_EQ(given.model.resident_bytes({given.range.address + 5 * page_bytes, page_bytes}, 0),
            page_bytes);
  EXPECT_EQ(given.model.resident_bytes({given.range.address + 5 * page_bytes, page_bytes}, -1), 0U);
}

}  // namespace
}  // namespace rmm_uvm::sim

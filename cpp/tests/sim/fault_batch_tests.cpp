// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Kernels and their page faults: batches, in which order they are served, what they bring.
// Figures are worked out from open-gpu-kernel-modules 580.142.
#include "../support/modelled.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;
using tests::modelled;

TEST(FaultBatches, TakeAsManyPagesAsMayBeOutstanding)
{
  modelled given{8, 1};
  given.touch(given.block(0));
  // 100 pages: 128 by density; 100 more: 256; 100 more: the rest.
  EXPECT_EQ(given.counters().fault_batches, 3U);
  EXPECT_EQ(given.counters().fault_services, 3U);
  EXPECT_EQ(given.counters().gpu_faults, 306U);  // 2 % of them twice
}

TEST(FaultBatches, AreCutAtTheDriversLimit)
{
  model_config config;
  config.machine.outstanding_faults = 400;
  config.machine.duplicate_fraction = 0;
  config.driver.prefetch            = false;
  modelled given{8, 1, 1, config};
  given.touch(given.block(0));
  EXPECT_EQ(given.counters().gpu_faults, 512U);
  EXPECT_EQ(given.counters().fault_batches, 2U);  // of 400 pages 256, then the rest and 112 more
}

TEST(FaultBatches, OfOnePageAtATimeComeToAnEnd)
{
  model_config config;
  config.machine.batch_faults       = 1;
  config.machine.duplicate_fraction = 0.5;
  config.driver.prefetch            = false;
  modelled given{1, 1, 1, config};
  given.touch(given.block(0));
  EXPECT_EQ(given.counters().fault_batches, pages_per_block);
}

TEST(FaultBatches, ServeBlocksInTheOrderOfAddresses)
{
  modelled given{1, 3};  // room for one block
  given.pages(given.range, {1024, 512, 0});
  // Served 0, 512, 1024: the last one stays; the others are pushed out before the replay and fault
  // again, so that the order of the second batch is 0, 512.
  EXPECT_GT(given.counters().fault_batches, 1U);
  EXPECT_EQ(given.model.resident_bytes(given.block(0), 0), 65'536U);
}

TEST(FaultBatches, PagesPushedOutByTheirOwnBatchFaultAgain)
{
  modelled given{2, 8};
  std::vector<std::uint64_t> listed;
  for (std::uint64_t block = 0; block < 8; ++block) {
    listed.push_back(block * pages_per_block);
  }
  given.pages(given.range, listed);
  modelled roomy{8, 8};
  roomy.pages(roomy.range, listed);
  EXPECT_EQ(roomy.counters().fault_batches, 1U);
  EXPECT_GT(given.counters().fault_batches, 1U);
  EXPECT_GT(given.counters().gpu_faults, roomy.counters().gpu_faults);
}

TEST(FaultBatches, PointerChaseHasOneFaultOutstanding)
{
  modelled given{64, 64};
  given.kernel({{given.range, {.kind = pattern_kind::pointer_chase, .count = 50}, false}});
  EXPECT_EQ(given.counters().fault_batches, given.counters().fault_services);
  EXPECT_GE(given.counters().fault_batches, 40U);
}

TEST(FaultBatches, SparseFaultsBring64KiBEach)
{
  modelled given{64, 64};
  given.pages(given.range, {0, 512, 1024, 1536});
  EXPECT_EQ(given.counters().filled_bytes, 4 * 65'536U);
  EXPECT_EQ(given.counters().fault_batches, 1U);
  EXPECT_EQ(given.counters().fault_services, 4U);
}

TEST(Kernels, AccessesGoForwardTogether)
{
  // Two ranges that fit one by one, not together, and are read in step: each stays only a little.
  modelled given{4, 6};
  given.kernel({{given.block(0, 3), {}, false}, {given.block(3, 3), {}, true}});
  EXPECT_EQ(given.counters().evicted_blocks, 2U);
}

TEST(Kernels, WithoutRoomAnywhereFail)
{
  model_config config;
  config.host_bytes = 0;
  modelled given{1, 2, 1, config};
  kernel_access const access{given.range, {}, true};
  EXPECT_EQ(given.model.launch({.accesses = {&access, 1}}).code, status_code::out_of_memory);
}

TEST(Kernels, OutsideOfManagedMemoryAreRefused)
{
  modelled given{1, 2};
  kernel_access const access{{given.range.address, given.range.bytes + 1}, {}, true};
  EXPECT_EQ(given.model.launch({.accesses = {&access, 1}}).code, status_code::invalid_value);
  EXPECT_EQ(given.model.launch({.gpu = 1}).code, status_code::invalid_value);
}

TEST(FaultBatches, BlockThatIsReadAndWrittenIsServedOnce)
{
  auto const services = [](std::size_t written_block) {
    modelled given{4, 2};
    given.kernel({{given.block(0), {}, false}, {given.block(written_block), {}, true}},
                 {.outstanding_faults = 32});  // 16 pages of each
    EXPECT_GT(given.counters().fault_batches, 1U);
    return static_cast<double>(given.counters().fault_services) /
           static_cast<double>(given.counters().fault_batches);
  };
  EXPECT_EQ(services(0), 1.0);
  EXPECT_EQ(services(1), 2.0);
}

TEST(FaultBatches, ReadsAndWritesOfABlockThatIsPushedOutFaultAgain)
{
  modelled given{1, 2};  // room for one of two blocks that are read and written in step
  given.kernel(
    {{given.block(0), {}, false}, {given.block(0), {}, true}, {given.block(1), {}, true}},
    {.outstanding_faults = 48});
  EXPECT_GT(given.counters().evicted_blocks, 0U);
  EXPECT_GT(given.counters().gpu_faults, 3 * 16U);
}

// Stopping

struct question {
  int asked{0};
  int yes{0};  // which time the answer is yes; 0: never
  static bool ask(void* self)
  {
    auto& own = *static_cast<question*>(self);
    return ++own.asked == own.yes;
  }
};

TEST(Kernels, ThatShallStopEndThereAndTheModelGoesOn)
{
  modelled given{8, 4};
  question third{.yes = 3};
  kernel_access const access{given.range, {.kind = pattern_kind::random, .count = 1U << 30U}, true};
  auto const ended =
    given.model.launch({.accesses = {&access, 1}, .shall_stop = question::ask, .asker = &third});
  EXPECT_EQ(ended.code, status_code::driver_error);
  EXPECT_EQ(third.asked, 3);
  auto const operations = given.counters().block_operations;
  EXPECT_LT(operations, 20'000U);
  given.touch(given.range);
  EXPECT_GT(given.counters().block_operations, operations);
}

TEST(Kernels, ThatShallNotStopGoToTheirEnd)
{
  modelled given{8, 4};
  question never;
  kernel_access const access{given.range, {.kind = pattern_kind::random, .count = 20'000}, true};
  EXPECT_TRUE(
    given.model.launch({.accesses = {&access, 1}, .shall_stop = question::ask, .asker = &never})
      .ok());
  EXPECT_GE(never.asked, 4);
}

}  // namespace
}  // namespace rmm_uvm::sim

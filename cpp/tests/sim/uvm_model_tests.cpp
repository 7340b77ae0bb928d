// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The model's rules beyond those that the simulated device's tests cover: fault batches, advice,
// peers, discard with mappings kept, streams, other processes. Figures are worked out from
// open-gpu-kernel-modules 580.142.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/uvm_model.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace rmm_uvm::sim {
namespace {

using tests::block_range;
using tests::blocks;

/** @brief A model with GPUs of `capacity` blocks, and one managed range. */
struct modelled {
  explicit modelled(std::size_t capacity,
                    std::size_t managed,
                    unsigned gpus       = 1,
                    model_config config = {})
    : model{sized(std::move(config), capacity, gpus)}
  {
    model.add_range(range = {std::uintptr_t{1} << 40U, blocks(managed)});
  }
  [[nodiscard]] static model_config sized(model_config config, std::size_t capacity, unsigned gpus)
  {
    config.device_bytes = blocks(capacity);
    config.gpus         = gpus;
    return config;
  }
  [[nodiscard]] memory_range block(std::size_t first, std::size_t count = 1) const
  {
    return block_range(range.address, first, count);
  }
  void kernel(std::vector<kernel_access> const& accesses, kernel_launch launch = {})
  {
    launch.accesses = accesses;
    ASSERT_TRUE(model.launch(launch).ok());
  }
  void touch(memory_range what, bool write = true, unsigned gpu = 0)
  {
    kernel({{what, {}, write}}, {.gpu = gpu});
  }
  void pages(memory_range what, std::vector<std::uint64_t> listed, bool write = true)
  {
    access_pattern pattern{.kind = pattern_kind::recorded};
    pattern.pages = std::make_shared<std::vector<std::uint64_t> const>(std::move(listed));
    kernel({{what, pattern, write}});
  }
  [[nodiscard]] model_counters const& counters() const { return model.counters(); }

  uvm_model model;
  memory_range range;
};

// Fault batches

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

// Advice

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

TEST(Advice, TakenBackLeavesOneCopyThatIsWrittenBack)
{
  modelled given{2, 4};
  ASSERT_TRUE(given.model.cpu_touch(given.block(0, 2), true).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::read_mostly, -1).ok());
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

// Discard

TEST(DiscardUnmapping, EvictedPagesTakeHostMemoryAndNoCopy)
{
  modelled given{1, 2};
  given.touch(given.block(0));
  ASSERT_TRUE(given.model.discard(given.block(0), true).ok());
  given.touch(given.block(1));
  EXPECT_EQ(given.counters().to_host_bytes, 0U);
  EXPECT_EQ(given.counters().dropped_bytes, blocks(1));
  EXPECT_EQ(given.counters().host_page_bytes, blocks(1));
  EXPECT_EQ(given.model.resident_bytes(given.block(0), -1), blocks(1));
}

TEST(DiscardUnmapping, WithoutHostMemoryCannotBeEvicted)
{
  model_config config;
  config.host_bytes = page_bytes;
  modelled given{1, 2, 1, config};
  given.touch(given.block(0));
  ASSERT_TRUE(given.model.discard(given.block(0), true).ok());
  kernel_access const access{given.block(1), {}, true};
  EXPECT_EQ(given.model.launch({.accesses = {&access, 1}}).code, status_code::out_of_memory);
}

TEST(DiscardKeepingMappings, GoesBeforeUsedAfterUnusedAndIsNotCopied)
{
  modelled given{3, 5};
  given.touch(given.block(0, 3));
  ASSERT_TRUE(given.model.discard(given.block(1), false).ok());
  EXPECT_EQ(given.model.resident_bytes(given.block(1), 0), blocks(1));
  given.touch(given.block(3));
  EXPECT_EQ(given.model.resident_bytes(given.block(0), 0), blocks(1));
  EXPECT_EQ(given.model.resident_bytes(given.block(1), 0), 0U);
  EXPECT_EQ(given.counters().to_host_bytes, 0U);
  EXPECT_EQ(given.counters().dropped_bytes, blocks(1));
}

TEST(DiscardKeepingMappings, IsNotUndoneByAWriteButByAPrefetch)
{
  for (auto const prefetched : {false, true}) {
    modelled given{2, 4};
    given.touch(given.block(0));
    ASSERT_TRUE(given.model.discard(given.block(0), false).ok());
    given.touch(given.block(0));  // hits
    if (prefetched) { ASSERT_TRUE(given.model.prefetch(given.block(0), 0, 0).ok()); }
    given.touch(given.block(1, 2));
    EXPECT_EQ(given.counters().to_host_bytes, prefetched ? blocks(1) : 0U);
  }
}

// Several GPUs

TEST(Peers, PagesMoveBetweenGpusAndTheEmptyChunkStays)
{
  modelled given{4, 4, 2};
  given.touch(given.range, true, 0);
  given.touch(given.range, false, 1);
  EXPECT_EQ(given.counters().peer_bytes, blocks(4));
  EXPECT_EQ(given.counters().to_host_bytes, 0U);
  EXPECT_EQ(given.model.resident_bytes(given.range, 0), 0U);
  EXPECT_EQ(given.model.resident_bytes(given.range, 1), blocks(4));
  EXPECT_EQ(given.model.free_bytes(0), 0U);  // reclaimed when somebody asks
}

TEST(Peers, EvictionGoesToTheHostEvenWhenAPeerIsIdle)
{
  modelled given{2, 4, 2};
  given.touch(given.range, true, 0);
  EXPECT_EQ(given.counters().to_host_bytes, blocks(2));
  EXPECT_EQ(given.counters().peer_bytes, 0U);
}

TEST(Peers, PrefetchWithoutPeerAccessDoesNothing)
{
  model_config config;
  config.peers = false;
  modelled given{4, 4, 2, config};
  given.touch(given.block(0, 2), true, 0);
  ASSERT_TRUE(given.model.prefetch(given.range, 1, 0).ok());
  EXPECT_EQ(given.model.resident_bytes(given.block(0, 2), 0), blocks(2));
  EXPECT_EQ(given.model.resident_bytes(given.block(2, 2), 1), blocks(2));
}

TEST(Peers, WithoutPeerAccessFaultsGoByWayOfTheHost)
{
  auto const nanoseconds = [](bool peers) {
    model_config config;
    config.peers = peers;
    modelled given{4, 4, 2, config};
    given.touch(given.range, true, 0);
    given.model.synchronize();
    auto const begin = given.model.now_ns();
    given.touch(given.range, false, 1);
    given.model.synchronize();
    return given.model.now_ns() - begin;
  };
  EXPECT_GT(nanoseconds(false), nanoseconds(true));
}

TEST(Peers, AccessedByReadsThePeersMemory)
{
  modelled given{4, 4, 2};
  given.touch(given.range, true, 0);
  ASSERT_TRUE(given.model.advise(given.range, advice::preferred_location, 0).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::accessed_by, 1).ok());
  given.touch(given.range, false, 1);
  EXPECT_EQ(given.counters().remote_bytes, blocks(4));
  EXPECT_EQ(given.model.resident_bytes(given.range, 0), blocks(4));
}

// Time

TEST(Streams, PrefetchRunsBesideAKernelThatDoesNotFault)
{
  modelled given{64, 64};
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  given.touch(given.block(0, 32));
  given.model.synchronize();
  auto const begin        = given.model.now_ns();
  constexpr double kernel = 10e6;
  given.kernel({{given.block(0, 32), {}, false}}, {.compute_ns = kernel, .stream = 1});
  ASSERT_TRUE(given.model.prefetch(given.block(32, 32), 0, 2).ok());
  given.model.synchronize();
  EXPECT_NEAR(given.model.now_ns() - begin, kernel, 0.1e6);
}

TEST(Streams, WhatIsOnOneStreamWaitsForWhatWasThereBefore)
{
  modelled given{64, 64};
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  given.model.synchronize();
  auto const begin = given.model.now_ns();
  given.kernel({}, {.compute_ns = 10e6, .stream = 1});
  ASSERT_TRUE(given.model.prefetch(given.range, 0, 1).ok());
  EXPECT_LT(given.model.now_ns() - begin, 1e6);  // the call returns at once
  given.model.synchronize();
  EXPECT_GT(given.model.now_ns() - begin, 11e6);
}

TEST(Links, ThatAreSharedTakeTheSumOfTheTimes)
{
  auto const seconds = [](std::vector<unsigned> links) {
    model_config config;
    config.links = std::move(links);
    // Copies take longer than the driver's thread, which there is one of.
    config.machine.to_device_bytes_per_ns = 12;
    modelled given{64, 64, 2, config};
    EXPECT_TRUE(given.model.cpu_touch(given.range, true).ok());
    given.model.synchronize();
    auto const begin = given.model.now_ns();
    for (std::size_t block = 0; block < 64; block += 2) {
      EXPECT_TRUE(given.model.prefetch(given.block(block), 0, 0).ok());
      EXPECT_TRUE(given.model.prefetch(given.block(block + 1), 1, 1).ok());
    }
    given.model.synchronize();
    return given.model.now_ns() - begin;
  };
  EXPECT_GE(seconds({0, 0}), seconds({0, 1}));
}

TEST(Evictions, AreFilledAgainAfterTheyWereCopied)
{
  // A batch of one block: its copy waits for the one that makes room. Both go over slow links.
  auto const nanoseconds = [](bool full) {
    model_config config;
    config.machine.to_device_bytes_per_ns = 2;
    config.machine.to_host_bytes_per_ns   = 2;
    config.machine.host_page_ns           = 0;
    config.driver.prefetch_threshold      = 0;
    modelled given{full ? 1U : 2U, 2, 1, config};
    EXPECT_TRUE(given.model.cpu_touch(given.block(1), true).ok());
    given.touch(given.block(0));
    given.model.synchronize();
    auto const begin = given.model.now_ns();
    given.touch(given.block(1), false);
    given.model.synchronize();
    return given.model.now_ns() - begin;
  };
  EXPECT_GT(nanoseconds(true) - nanoseconds(false), static_cast<double>(va_block_bytes) / 2);
}

TEST(OtherProcesses, CudaMallocMemoryIsNeverEvictedAndEvicts)
{
  modelled given{4, 4};
  given.touch(given.range);
  ASSERT_TRUE(given.model.allocate_device(0, blocks(3)).ok());
  EXPECT_EQ(given.counters().evicted_blocks, 3U);
  given.touch(given.range, false);
  EXPECT_EQ(given.counters().resident_bytes, blocks(1));
  EXPECT_EQ(given.model.allocate_device(0, blocks(2)).code, status_code::out_of_memory);
  given.model.free_device(0, blocks(3));
  given.touch(given.range, false);
  EXPECT_EQ(given.counters().resident_bytes, blocks(4));
}

TEST(Footprint, StaysUnder200BytesForEachBlock)
{
  constexpr std::size_t count = 8192;  // 16 GiB
  modelled given{count / 2, count};
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  EXPECT_LT(given.model.footprint_bytes(), 64 * count);
  given.kernel({{given.range, {.kind = pattern_kind::random, .count = 200'000}, true}});
  EXPECT_LT(given.model.footprint_bytes(), 200 * count);
}

TEST(Ranges, NumbersOfBlocksAreUsedAgain)
{
  modelled given{4, 1};
  given.touch(given.range);
  auto const before = given.model.footprint_bytes();
  for (std::uintptr_t round = 1; round < 1000; ++round) {
    memory_range const other{(std::uintptr_t{1} << 41U) + round * blocks(8), blocks(1 + round % 3)};
    given.model.add_range(other);
    given.touch(other);
    EXPECT_TRUE(given.model.remove_range(other.address));
  }
  EXPECT_FALSE(given.model.remove_range(std::uintptr_t{1} << 41U));
  EXPECT_LT(given.model.footprint_bytes(), before + 4096);
  EXPECT_EQ(given.counters().managed_bytes, blocks(1));
}

}  // namespace
}  // namespace rmm_uvm::sim

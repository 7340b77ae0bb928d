// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Discard with and without mappings, streams, links, other processes, ranges.
// Figures are worked out from open-gpu-kernel-modules 580.142.
#include "../support/modelled.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;
using tests::modelled;

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

/** @brief A model of round figures: blocks come in 2^21 ns, and are read in 512. */
[[nodiscard]] modelled round_figures()
{
  model_config config;
  config.machine.to_device_bytes_per_ns = 1;
  config.machine.memory_bytes_per_ns    = 4096;
  config.machine.copy_ns                = 0;
  config.machine.call_ns                = 0;
  config.machine.block_to_device_ns     = 100;
  config.machine.resident_block_ns      = 0;
  config.machine.populate_block_ns      = 5'000;
  config.machine.launch_ns              = 0;
  return modelled{8, 8, 1, config};
}

/** @brief How long a kernel takes that reads a range on a stream, from `begin` to its end. */
[[nodiscard]] double read_by_ns(modelled& given, memory_range what, double begin)
{
  given.kernel({{what, {}, false}}, {.stream = 2});
  given.model.synchronize(2);
  return given.model.now_ns() - begin;
}

constexpr double arrives_ns = static_cast<double>(va_block_bytes);  // a block of round_figures

TEST(Streams, AKernelWaitsForEachBlockThatIsUnderWayOnAnother)
{
  for (std::size_t const block : {0U, 1U}) {
    auto given = round_figures();
    ASSERT_TRUE(given.model.cpu_touch(given.block(0, 2), true).ok());
    given.model.synchronize();
    auto const begin = given.model.now_ns();
    ASSERT_TRUE(given.model.prefetch(given.block(0, 2), 0, 1).ok());
    auto const arrives = 100 + static_cast<double>(block + 1) * arrives_ns;
    EXPECT_NEAR(read_by_ns(given, given.block(block), begin), arrives + 512, 1e-3);
  }
}

TEST(Streams, AKernelDoesNotWaitForWhatItDoesNotUse)
{
  auto given = round_figures();
  ASSERT_TRUE(given.model.cpu_touch(given.block(0), true).ok());
  given.touch(given.block(2));
  given.model.synchronize();
  auto const begin = given.model.now_ns();
  ASSERT_TRUE(given.model.prefetch(given.block(0), 0, 1).ok());
  EXPECT_NEAR(
    read_by_ns(given, given.block(2), begin), 100 + 512, 1e-3);  // the call, and reading it
}

TEST(Streams, AKernelThatComesLaterDoesNotWaitAnyMore)
{
  auto given = round_figures();
  ASSERT_TRUE(given.model.cpu_touch(given.block(0), true).ok());
  ASSERT_TRUE(given.model.prefetch(given.block(0), 0, 1).ok());
  given.model.synchronize();
  EXPECT_NEAR(read_by_ns(given, given.block(0), given.model.now_ns()), 512, 1e-3);
}

TEST(Streams, AKernelWaitsForPagesWithoutContentsThatAreUnderWayToo)
{
  auto given       = round_figures();
  auto const begin = given.model.now_ns();
  given.kernel({}, {.compute_ns = 1e6, .stream = 1});
  ASSERT_TRUE(given.model.prefetch(given.block(0), 0, 1).ok());
  EXPECT_NEAR(read_by_ns(given, given.block(0), begin), 1e6 + 5'000 + 512, 1e-3);
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

TEST(Ranges, ThatCannotBeAreRefused)
{
  modelled given{4, 2};
  auto const block       = std::uintptr_t{1} << 21U;
  constexpr auto largest = std::numeric_limits<std::size_t>::max();
  for (auto const& range : std::vector<memory_range>{
         {given.range.address + blocks(8), 0},
         {given.range.address + blocks(8) + page_bytes, blocks(1)},
         {given.range.address + blocks(8), largest},
         {given.range.address + blocks(8), largest - page_bytes + 2},
         {std::uintptr_t{1} << 53U, blocks(1)},
         {(std::uintptr_t{1} << 53U) - block, blocks(2)},
         {given.range.address, blocks(1)},
         {given.range.address + block, blocks(1)},
         {given.range.address - block, blocks(2)},
       }) {
    EXPECT_THROW(given.model.add_range(range), std::invalid_argument) << range.address;
  }
  EXPECT_EQ(given.counters().managed_bytes, blocks(2));
  given.model.add_range({given.range.address - block, blocks(1)});
  given.model.add_range({(std::uintptr_t{1} << 53U) - block, blocks(1)});
  EXPECT_EQ(given.counters().managed_bytes, blocks(4));
}

TEST(Places, ThatAreNoneAreRefused)
{
  modelled given{4, 2, 2};
  given.touch(given.range);
  for (auto const where : {-2, -128, 2, 256}) {
    EXPECT_EQ(given.model.prefetch(given.range, where, 0).code, status_code::invalid_value);
    EXPECT_EQ(given.model.discard_and_prefetch(given.range, where, 0).code,
              status_code::invalid_value);
    EXPECT_EQ(given.model.advise(given.range, advice::preferred_location, where).code,
              status_code::invalid_value);
    EXPECT_EQ(given.model.resident_bytes(given.range, where), 0U);
  }
  EXPECT_EQ(given.model.allocate_device(2, 512).code, status_code::invalid_value);
  EXPECT_EQ(given.model.free_bytes(2), 0U);
  given.model.free_device(0, 512);  // was never taken
  EXPECT_EQ(given.counters().device_bytes, 0U);
  EXPECT_EQ(given.model.resident_bytes(given.range, 0), blocks(2));
}

TEST(Policies, OfManyBlocksMayAllDiffer)
{
  // Each block is accessed by another set of GPUs: 256 sets, with two places to belong to.
  modelled given{4, 512, 8};
  for (std::size_t number = 0; number < 512; ++number) {
    auto const block = given.block(number);
    for (int gpu = 0; gpu < 8; ++gpu) {
      if (((number >> static_cast<unsigned>(gpu)) & 1U) == 0) { continue; }
      ASSERT_TRUE(given.model.advise(block, advice::accessed_by, gpu).ok());
    }
    auto const home = number < 256 ? 0 : -1;
    ASSERT_TRUE(given.model.advise(block, advice::preferred_location, home).ok());
  }
  ASSERT_TRUE(given.model.cpu_touch(given.range, true).ok());
  given.touch(given.block(511), false, 7);  // accessed by all
  EXPECT_EQ(given.counters().remote_bytes, blocks(1));
  given.touch(given.block(0), false, 0);  // accessed by none
  EXPECT_EQ(given.counters().remote_bytes, blocks(1));
  EXPECT_EQ(given.counters().to_device_bytes, blocks(1));
}

}  // namespace
}  // namespace rmm_uvm::sim

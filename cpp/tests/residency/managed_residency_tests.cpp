// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What memory without a budget asks of a driver, call by call.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::driver_call;
using tests::recording_driver;
using tests::slab_address;
using calls = std::vector<driver_call>;

constexpr std::size_t headroom_bytes = std::size_t{64} << 20U;  // a sixteenth of the device
constexpr auto automatic             = prefetch_mode::automatic;

class Prefetcher : public testing::Test {
 protected:
  /** @brief A slab of eight whole blocks, on the device, with the recording begun after it. */
  void take_slab()
  {
    residency.on_slab(slab, stream, automatic);
    static_cast<void>(driver->take_calls());
  }
  /** @brief Something left the device: every block is in doubt. */
  void evict_something() { driver->counted.device_to_host_bytes += 4096; }
  [[nodiscard]] std::uint64_t skipped(skip_reason reason) const
  {
    return residency.statistics().skipped[static_cast<std::size_t>(reason)];
  }
  [[nodiscard]] bool in_doubt(memory_range range)
  {
    return !residency.ledger().doubtful_runs(range, residency.current_epoch()).empty();
  }

  memory_range const slab{slab_address, blocks(8)};
  stream_handle const stream{reinterpret_cast<stream_handle>(std::uintptr_t{0x1234})};
  stream_handle const discards{recording_driver::own(own_stream_use::discards)};
  std::shared_ptr<recording_driver> driver{std::make_shared<recording_driver>()};
  rmm_uvm::managed_residency residency{driver, make_epoch_source(*driver)};
};

// Slabs

TEST_F(Prefetcher, SlabThatFitsIsPrefetchedWholeInTheStreamsOrder)
{
  residency.on_slab(slab, stream, automatic);
  EXPECT_EQ(driver->take_calls("prefetch"), (calls{{"prefetch", {slab}, stream, 0}}));
  EXPECT_EQ(residency.statistics().slab_prefetched_bytes, slab.bytes);
  EXPECT_FALSE(in_doubt(slab));
}

TEST_F(Prefetcher, SlabIsPrefetchedAsFarAsFreeMemoryHolds)
{
  driver->level.free_bytes = headroom_bytes + blocks(3);
  residency.on_slab(slab, stream, automatic);
  EXPECT_EQ(driver->take_calls("prefetch"),
            (calls{{"prefetch", {block_range(slab_address, 0, 3)}, stream, 0}}));
  EXPECT_FALSE(in_doubt(block_range(slab_address, 0, 3)));
  EXPECT_TRUE(in_doubt(block_range(slab_address, 3, 1)));
}

TEST_F(Prefetcher, SlabWithoutFreeMemoryIsSkippedWithTheReason)
{
  for (auto const free_bytes : {std::size_t{0}, headroom_bytes}) {
    driver->level.free_bytes = free_bytes;
    residency.on_slab({slab_address + free_bytes, blocks(1)}, stream, automatic);
  }
  EXPECT_TRUE(driver->take_calls("prefetch").empty());
  EXPECT_EQ(skipped(skip_reason::no_free_memory), 2U);
}

TEST_F(Prefetcher, SlabWithModeNeverIsKeptButNotMoved)
{
  residency.on_slab(slab, stream, prefetch_mode::never);
  EXPECT_TRUE(driver->take_calls().empty());
  EXPECT_EQ(skipped(skip_reason::mode_never), 1U);
  EXPECT_EQ(residency.ledger().slab_bytes(), slab.bytes);
}

TEST_F(Prefetcher, SlabIsInDoubtWhenFreeMemoryCannotBeRead)
{
  driver->answers["memory"] = {status_code::driver_error, 700, "cuMemGetInfo"};
  residency.on_slab(slab, stream, automatic);
  EXPECT_TRUE(driver->take_calls("prefetch").empty());
  EXPECT_EQ(residency.statistics().last_failure.native_error, 700);
  EXPECT_TRUE(in_doubt(slab));
}

TEST_F(Prefetcher, SlabIsInDoubtWhenItsPrefetchFails)
{
  driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
  residency.on_slab(slab, stream, automatic);
  EXPECT_EQ(residency.statistics().failed_calls, 1U);
  EXPECT_EQ(residency.statistics().slab_prefetched_bytes, 0U);
  EXPECT_TRUE(in_doubt(slab));
}

TEST_F(Prefetcher, FreedSlabIsForgotten)
{
  take_slab();
  residency.on_slab_free(slab.address);
  EXPECT_FALSE(residency.ledger().slab_of(slab.address));
  residency.on_slab(slab, stream, prefetch_mode::never);  // the same addresses again
  EXPECT_TRUE(in_doubt(slab));
}

// Allocations while nothing was evicted

TEST_F(Prefetcher, AllocationWithoutEvictionsAsksTheDriverNothing)
{
  take_slab();
  EXPECT_FALSE(residency.on_allocate({slab_address + 256, blocks(3)}, stream, automatic));
  EXPECT_TRUE(driver->take_calls().empty());
  EXPECT_EQ(skipped(skip_reason::resident), 1U);
}

TEST_F(Prefetcher, AllocationOfNothingIsNotCounted)
{
  take_slab();
  for (auto const mode : {automatic, prefetch_mode::always, prefetch_mode::never}) {
    EXPECT_FALSE(residency.on_allocate({slab_address, 0}, stream, mode));
  }
  EXPECT_TRUE(driver->take_calls().empty());
  for (auto const count : residency.statistics().skipped) {
    EXPECT_EQ(count, 0U);
  }
}

TEST_F(Prefetcher, ResidentAllocationBesideADoubtfulSlabAsksTheDriverNothing)
{
  take_slab();
  residency.on_slab({slab_address + blocks(100), blocks(1)}, stream, prefetch_mode::never);
  EXPECT_FALSE(residency.on_allocate(slab, stream, automatic));
  EXPECT_TRUE(driver->take_calls().empty());
}

// Allocations after an eviction

TEST_F(Prefetcher, DoubtfulAllocationPrefetchesEdgesAndDiscardsTheInside)
{
  take_slab();
  evict_something();
  EXPECT_TRUE(residency.on_allocate({slab_address + 256, blocks(3)}, stream, automatic));
  auto const expected = calls{
    {"capturing", {}, stream},
    {"own_stream", {}},
    {"synchronize", {}, discards},
    {"discard_and_prefetch", {block_range(slab_address, 1, 2)}, discards, 0},
    {"synchronize", {}, discards},
    {"prefetch", {block_range(slab_address, 0, 1)}, stream, 0},
    {"prefetch", {block_range(slab_address, 3, 1)}, stream, 0},
  };
  EXPECT_EQ(driver->take_calls(), expected);
  auto const statistics = residency.statistics();
  EXPECT_EQ(statistics.prefetch_calls, 2U);
  EXPECT_EQ(statistics.prefetched_bytes, blocks(2));
  EXPECT_EQ(statistics.discard_calls, 1U);
  EXPECT_EQ(statistics.discarded_bytes, blocks(2));
  EXPECT_EQ(statistics.undiscarded_bytes, 0U);
}

TEST_F(Prefetcher, DoubtfulAllocationOnABusyStreamIsPrefetchedAsItIs)
{
  take_slab();
  evict_something();
  driver->streams_idle = false;
  EXPECT_TRUE(residency.on_allocate({slab_address + 256, blocks(3)}, stream, automatic));
  EXPECT_EQ(
    driver->take_calls(),
    (calls{{"capturing", {}, stream}, {"prefetch", {block_range(slab_address, 0, 4)}, stream, 0}}));
  auto const statistics = residency.statistics();
  EXPECT_EQ(statistics.discard_calls, 0U);
  EXPECT_EQ(statistics.undiscarded_bytes, blocks(2));
  EXPECT_FALSE(in_doubt(block_range(slab_address, 0, 4)));
}

TEST_F(Prefetcher, DiscardWaitsForItsOwnStreamBeforeAndAfter)
{
  take_slab();
  driver->answers["synchronize"] = {status_code::driver_error, 1, "cuStreamSynchronize"};
  std::vector<memory_range> const dead{block_range(slab_address, 1, 2)};
  EXPECT_FALSE(residency.on_dead(dead));
  EXPECT_TRUE(driver->take_calls("discard").empty());
}

TEST_F(Prefetcher, SettledBlocksAreNotIssuedTwice)
{
  take_slab();
  evict_something();
  EXPECT_TRUE(residency.on_allocate({slab_address + 256, blocks(3)}, stream, automatic));
  static_cast<void>(driver->take_calls());
  EXPECT_FALSE(residency.on_allocate(block_range(slab_address, 0, 4), stream, automatic));
  EXPECT_TRUE(driver->take_calls().empty());
  EXPECT_TRUE(in_doubt(block_range(slab_address, 4, 4)));
}

TEST_F(Prefetcher, WithoutDiscardEverythingIsPrefetched)
{
  driver->facts.discard = availability::no("CUDA 12");
  take_slab();
  evict_something();
  EXPECT_TRUE(residency.on_allocate(slab, stream, automatic));
  EXPECT_EQ(driver->take_calls("prefetch"), (calls{{"prefetch", {slab}, stream, 0}}));
  EXPECT_FALSE(in_doubt(slab));
}

TEST_F(Prefetcher, FailedEdgeStaysInDoubt)
{
  take_slab();
  evict_something();
  driver->answers["prefetch"] = {status_code::driver_error, 700, "cuMemPrefetchAsync"};
  EXPECT_TRUE(residency.on_allocate({slab_address + 256, blocks(3)}, stream, automatic));
  EXPECT_TRUE(in_doubt(block_range(slab_address, 0, 1)));
  EXPECT_FALSE(in_doubt(block_range(slab_address, 1, 2)));
  EXPECT_EQ(residency.statistics().failed_calls, 2U);
}

TEST_F(Prefetcher, FailedDiscardFallsBackToAPrefetch)
{
  take_slab();
  evict_something();
  driver->answers["discard_and_prefetch"] = {status_code::invalid_value, 1, "cuMemDiscard"};
  EXPECT_TRUE(residency.on_allocate(slab, stream, automatic));
  EXPECT_EQ(driver->take_calls("prefetch"), (calls{{"prefetch", {slab}, stream, 0}}));
  EXPECT_FALSE(in_doubt(slab));
  auto const statistics = residency.statistics();
  EXPECT_EQ(statistics.failed_calls, 1U);
  EXPECT_EQ(statistics.discard_calls, 0U);
  EXPECT_EQ(statistics.discarded_bytes, 0U);
}

TEST_F(Prefetcher, FailedDiscardAndFallbackStayInDoubtAndAreTriedAgain)
{
  take_slab();
  evict_something();
  driver->answers["discard_and_prefetch"] = {status_code::invalid_value, 1, "cuMemDiscard"};
  driver->answers["prefetch"]             = {status_code::driver_error, 700, "cuMemPrefetch"};
  static_cast<void>(residency.on_allocate(slab, stream, automatic));
  EXPECT_TRUE(in_doubt(slab));
  EXPECT_STREQ(residency.statistics().last_failure.call, "cuMemPrefetch");
  driver->answers.clear();
  EXPECT_TRUE(residency.on_allocate(slab, stream, automatic));
  EXPECT_FALSE(in_doubt(slab));
}

TEST_F(Prefetcher, EvictionDuringThePrefetchLeavesTheBlocksInDoubt)
{
  take_slab();
  evict_something();
  driver->on_call = [this](driver_call const& call) {
    if (call.name == "discard_and_prefetch") { evict_something(); }
  };
  EXPECT_TRUE(residency.on_allocate(slab, stream, automatic));
  EXPECT_TRUE(in_doubt(slab));  // marked with the epoch from before the call, which is over
}

// Skips, each with its reason

TEST_F(Prefetcher, CapturingStreamIsLeftAlone)
{
  take_slab();
  evict_something();
  driver->capture = capture_state::capturing;
  EXPECT_FALSE(residency.on_allocate(slab, stream, automatic));
  EXPECT_EQ(driver->take_calls(), (calls{{"capturing", {}, stream}}));
  EXPECT_EQ(skipped(skip_reason::capturing), 1U);
  EXPECT_TRUE(in_doubt(slab));
}

TEST_F(Prefetcher, StreamThatCannotBeKnownIsLeftAlone)
{
  take_slab();
  evict_something();
  driver->capture = capture_state::unknown;
  EXPECT_FALSE(residency.on_allocate(slab, stream, automatic));
  EXPECT_EQ(driver->take_calls(), (calls{{"capturing", {}, stream}}));
  EXPECT_EQ(skipped(skip_reason::capture_unknown), 1U);
}

TEST_F(Prefetcher, AllocationLargerThanTheDeviceIsSkipped)
{
  take_slab();
  evict_something();
  driver->facts.total_bytes = slab.bytes - 1;
  EXPECT_FALSE(residency.on_allocate(slab, stream, automatic));
  EXPECT_TRUE(driver->take_calls().empty());
  EXPECT_EQ(skipped(skip_reason::larger_than_device), 1U);
}

TEST_F(Prefetcher, AllocationAsLargeAsTheDeviceIsIssued)
{
  take_slab();
  evict_something();
  driver->facts.total_bytes = slab.bytes;
  EXPECT_TRUE(residency.on_allocate(slab, stream, automatic));
}

TEST_F(Prefetcher, WithoutConcurrentAccessNothingIsIssued)
{
  driver->facts.concurrent_managed_access = availability::no("WSL2");
  residency.on_slab(slab, stream, automatic);
  EXPECT_FALSE(residency.on_allocate(slab, stream, automatic));
  EXPECT_FALSE(residency.on_allocate(slab, stream, prefetch_mode::always));
  EXPECT_TRUE(driver->take_calls("prefetch").empty());
  EXPECT_EQ(skipped(skip_reason::no_concurrent_managed_access), 3U);
}

TEST_F(Prefetcher, WhereDeviceMemoryIsHostMemoryNothingIsIssued)
{
  driver->facts.integrated = true;
  residency.on_slab(slab, stream, automatic);
  EXPECT_FALSE(residency.on_allocate(slab, stream, prefetch_mode::always));
  EXPECT_TRUE(driver->take_calls("prefetch").empty());
  EXPECT_EQ(skipped(skip_reason::integrated), 2U);
}

// The other modes

TEST_F(Prefetcher, NeverIssuesNothingEvenInDoubt)
{
  take_slab();
  evict_something();
  EXPECT_FALSE(residency.on_allocate(slab, stream, prefetch_mode::never));
  EXPECT_TRUE(driver->take_calls().empty());
  EXPECT_EQ(skipped(skip_reason::mode_never), 1U);
}

TEST_F(Prefetcher, AlwaysPrefetchesTheAllocationItselfEveryTime)
{
  take_slab();
  memory_range const allocation{slab_address + 256, 512};
  EXPECT_TRUE(residency.on_allocate(allocation, stream, prefetch_mode::always));
  EXPECT_TRUE(residency.on_allocate(allocation, stream, prefetch_mode::always));
  driver_call const expected{"prefetch", {allocation}, stream, 0};
  EXPECT_EQ(driver->take_calls("prefetch"), (calls{expected, expected}));
  EXPECT_EQ(residency.statistics().prefetched_bytes, 2 * allocation.bytes);
}

TEST_F(Prefetcher, AlwaysReportsAFailureAsNothingIssued)
{
  take_slab();
  driver->answers["prefetch"] = {status_code::driver_error, 700, "cuMemPrefetchAsync"};
  EXPECT_FALSE(residency.on_allocate(slab, stream, prefetch_mode::always));
  EXPECT_EQ(residency.statistics().failed_calls, 1U);
  EXPECT_EQ(residency.statistics().prefetch_calls, 0U);
}

TEST(SkipReason, EveryReasonHasAName)
{
  for (std::size_t reason = 0; reason < skip_reason_count; ++reason) {
    EXPECT_STRNE(to_string(static_cast<skip_reason>(reason)), "unknown");
  }
  EXPECT_STREQ(to_string(static_cast<skip_reason>(skip_reason_count)), "unknown");
}

// Dead blocks

TEST_F(Prefetcher, DeadBlocksAreDiscardedInOneCallAndPutInDoubt)
{
  take_slab();
  std::vector<memory_range> const dead{block_range(slab_address, 1, 2),
                                       block_range(slab_address, 5, 1)};
  EXPECT_TRUE(residency.on_dead(dead));
  EXPECT_EQ(driver->take_calls("discard"), (calls{{"discard", {dead[0], dead[1]}, discards}}));
  EXPECT_TRUE(in_doubt(dead[0]));
  EXPECT_TRUE(in_doubt(dead[1]));
  EXPECT_FALSE(in_doubt(block_range(slab_address, 3, 2)));
  EXPECT_EQ(residency.statistics().discarded_bytes, blocks(3));
}

TEST_F(Prefetcher, AllocationOverDeadBlocksMakesThemUsable)
{
  take_slab();
  std::vector<memory_range> const dead{block_range(slab_address, 1, 2)};
  EXPECT_TRUE(residency.on_dead(dead));
  static_cast<void>(driver->take_calls());
  EXPECT_TRUE(residency.on_allocate(block_range(slab_address, 0, 4), stream, automatic));
  EXPECT_EQ(driver->take_calls("discard_and_prefetch"),
            (calls{{"discard_and_prefetch", {dead[0]}, discards, 0}}));
}

TEST_F(Prefetcher, DeadBlocksStayWhereTheDeviceCannotDiscard)
{
  driver->facts.discard = availability::no("too old");
  take_slab();
  std::vector<memory_range> const dead{block_range(slab_address, 1, 2)};
  EXPECT_FALSE(residency.on_dead(dead));
  EXPECT_TRUE(driver->take_calls("discard").empty());
  EXPECT_FALSE(in_doubt(dead[0]));
}

TEST_F(Prefetcher, DiscardThatFailedLeavesTheBlocksInDoubt)
{
  take_slab();
  driver->answers["discard"] = {status_code::driver_error, 1, "discard"};
  std::vector<memory_range> const dead{block_range(slab_address, 1, 2)};
  EXPECT_FALSE(residency.on_dead(dead));
  EXPECT_TRUE(in_doubt(dead[0]));
  EXPECT_EQ(residency.statistics().failed_calls, 1U);
  EXPECT_EQ(residency.statistics().discarded_bytes, 0U);
}

TEST_F(Prefetcher, NoDeadBlocksIssueNothing)
{
  take_slab();
  EXPECT_FALSE(residency.on_dead({}));
  EXPECT_TRUE(driver->take_calls().empty());
}

}  // namespace
}  // namespace rmm_uvm

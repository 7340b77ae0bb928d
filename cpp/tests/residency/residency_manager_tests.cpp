// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the manager asks of a driver, call by call, in the caller's thread.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>

#include <gtest/gtest.h>

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

class ResidencyManager : public testing::Test {
 protected:
  static constexpr std::size_t budget_blocks = 8;

  void make(eviction_policy policy = eviction_policy::lru)
  {
    auto settings         = residency_settings::of(blocks(budget_blocks));
    settings.policy       = policy;
    settings.ahead        = true;
    settings.background   = false;
    settings.fetch_bytes  = blocks(32);
    settings.fetch        = fetch;
    settings.discard_dead = discard_dead;
    ledger.add_slab(slab);
    manager = std::make_unique<residency_manager>(driver, ledger, settings, &adviser);
  }
  [[nodiscard]] static memory_range at(std::size_t first, std::size_t count = 1)
  {
    return block_range(slab_address, first, count);
  }
  void allocate(std::size_t first, std::size_t count)
  {
    manager->on_allocate(at(first, count), stream);
  }
  void free(std::size_t first, std::size_t count) { manager->on_free(at(first, count), stream); }
  void touch(std::size_t first, std::size_t count)
  {
    tests::touch(*manager, at(first, count), stream);
  }
  [[nodiscard]] driver_call to_host(std::size_t first, std::size_t count) const
  {
    return {"prefetch", {at(first, count)}, evictions, location::host_id};
  }
  [[nodiscard]] driver_call dropped(std::size_t first, std::size_t count) const
  {
    return {"discard", {at(first, count)}, discards};
  }
  [[nodiscard]] driver_call renewed(std::size_t first, std::size_t count) const
  {
    return {"discard_and_prefetch", {at(first, count)}, stream, 0};
  }
  [[nodiscard]] driver_call fetched(std::size_t first, std::size_t count) const
  {
    return {"prefetch", {at(first, count)}, stream, 0};
  }
  [[nodiscard]] driver_call migrated_to_host(std::size_t first, std::size_t count) const
  {
    return {"migrate", {at(first, count)}, nullptr, location::host_id};
  }
  [[nodiscard]] calls moves()
  {
    calls found;
    for (auto& each : driver->take_calls()) {
      if (each.name == "prefetch" || each.name == "discard" ||
          each.name == "discard_and_prefetch" || each.name == "migrate") {
        found.push_back(each);
      }
    }
    return found;
  }

  bool fetch{true};
  bool discard_dead{true};
  memory_range const slab{slab_address, blocks(32)};
  stream_handle const stream{reinterpret_cast<stream_handle>(std::uintptr_t{0x1234})};
  stream_handle const evictions{recording_driver::own(own_stream_use::evictions)};
  stream_handle const discards{recording_driver::own(own_stream_use::discards)};
  stream_handle const frees{recording_driver::own(own_stream_use::frees)};
  std::shared_ptr<recording_driver> driver{std::make_shared<recording_driver>()};
  residency_ledger ledger;
  memory_adviser adviser{driver, ledger};
  std::unique_ptr<residency_manager> manager;
};

TEST_F(ResidencyManager, AllocationThatFitsIsRenewedAndNothingLeaves)
{
  make();
  allocate(0, 8);
  EXPECT_EQ(moves(), (calls{renewed(0, 8)}));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(ResidencyManager, AllocationOfWhatIsThereCallsNothing)
{
  make();
  allocate(0, 4);
  free(0, 4);
  static_cast<void>(moves());
  allocate(0, 4);
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyManager, DeadBlocksAreDroppedBeforeLiveOnesAreCopied)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  free(0, 4);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{dropped(0, 2), renewed(8, 2)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.dropped_bytes, blocks(2));
  EXPECT_EQ(counts.evicted_bytes, 0U);
  EXPECT_EQ(counts.resident_bytes, blocks(8));
}

TEST_F(ResidencyManager, LiveBlocksLeaveInTheOrderOfThePolicyInPieces)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  touch(0, 4);
  static_cast<void>(moves());
  allocate(8, 3);
  EXPECT_EQ(moves(), (calls{to_host(4, 2), to_host(6, 1), renewed(8, 3)}));
}

TEST_F(ResidencyManager, FifoForgetsUses)
{
  make(eviction_policy::fifo);
  allocate(0, 4);
  allocate(4, 4);
  touch(0, 4);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, DeadBlocksAreCopiedWhereDiscardIsOff)
{
  discard_dead = false;
  make(eviction_policy::fifo);
  allocate(0, 8);
  free(0, 8);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, WithoutFetchingPagesComeByFault)
{
  fetch = false;
  make(eviction_policy::fifo);
  allocate(0, 8);
  touch(0, 8);
  EXPECT_TRUE(moves().empty());
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2)}));
}

TEST_F(ResidencyManager, WithoutFetchingNothingIsDropped)
{
  fetch = false;
  make();
  allocate(0, 8);
  free(0, 8);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2)}));
}

TEST_F(ResidencyManager, WhatWasFreedLastIsDroppedLast)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  touch(0, 4);
  free(0, 8);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{dropped(4, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, BlockThatIsSharedLeavesByItsSoonestUse)
{
  make(eviction_policy::repeat);
  auto const half = va_block_bytes / 2;
  memory_range const often{slab_address, half};
  memory_range const seldom{slab_address + half, half};
  manager->on_allocate(often, stream);
  manager->on_allocate(seldom, stream);
  for (int round = 0; round < 12; ++round) {
    for (int use = 0; use < 4; ++use) {
      tests::touch(*manager, often, stream);
    }
    tests::touch(*manager, seldom, stream);
  }
  allocate(1, 7);
  static_cast<void>(moves());
  allocate(8, 2);
  for (auto const& call : moves()) {
    EXPECT_NE(call, to_host(0, 1));
  }
}

TEST_F(ResidencyManager, TouchBringsBackWhatIsAwayAndOnlyThat)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  allocate(8, 4);  // 0 to 3 leave
  static_cast<void>(moves());
  touch(2, 4);
  EXPECT_EQ(moves(), (calls{to_host(6, 2), fetched(2, 2)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.wanted_bytes, blocks(4));
  EXPECT_EQ(counts.present_bytes, blocks(2));
}

TEST_F(ResidencyManager, BlockBesideALiveNeighbourIsFetchedWithIt)
{
  make();
  auto const half = va_block_bytes / 2;
  manager->on_allocate({slab_address, half}, stream);
  static_cast<void>(manager->evict(at(0)));
  static_cast<void>(moves());
  manager->on_allocate({slab_address + half, half}, stream);
  EXPECT_EQ(moves(), (calls{fetched(0, 1)}));
}

TEST_F(ResidencyManager, BlockIsDeadOnlyWhenItsLastAllocationIsFreed)
{
  make();
  auto const half = va_block_bytes / 2;
  manager->on_allocate({slab_address, half}, stream);
  manager->on_allocate({slab_address + half, half}, stream);
  manager->on_free({slab_address, half}, stream);
  allocate(1, 7);
  static_cast<void>(moves());
  allocate(8, 1);
  EXPECT_EQ(moves(), (calls{to_host(0, 1), renewed(8, 1)}));
}

// Discards: the rules without which data would be lost.

TEST_F(ResidencyManager, FreeUnderPressureIsFencedByAStreamOfItsOwn)
{
  make();
  allocate(0, 4);
  driver->orders.clear();
  free(0, 4);
  EXPECT_EQ(driver->orders,
            (std::vector<std::pair<stream_handle, stream_handle>>{{frees, stream}}));
}

TEST_F(ResidencyManager, StreamOfDiscardsWaitsForNoOtherSoThatItIsIdleAtEachDiscard)
{
  make();
  // A free between the wait for the frees and the discard must not hold the discard up.
  for (std::size_t round = 0; round < 4; ++round) {
    allocate(0, 8);
    free(0, 8);
    allocate(8, 8);
    free(8, 8);
  }
  EXPECT_GT(manager->statistics().dropped_bytes, 0U);
  for (auto const& [later, earlier] : driver->orders) {
    EXPECT_NE(later, discards);
  }
}

TEST_F(ResidencyManager, NothingIsDiscardedWhereTheFreesCannotBeAwaited)
{
  make();
  allocate(0, 8);
  free(0, 8);
  driver->answers["synchronize"] = {status_code::driver_error, 1, "cuStreamSynchronize"};
  static_cast<void>(moves());
  allocate(8, 1);
  EXPECT_EQ(moves(), (calls{renewed(8, 1)}));
  EXPECT_EQ(manager->statistics().dropped_bytes, 0U);
  EXPECT_GT(manager->statistics().failed_calls, 0U);
}

TEST_F(ResidencyManager, BlockWithoutAFenceIsCopiedAndNeverDropped)
{
  make();
  allocate(0, 8);
  driver->answers["order"] = {status_code::driver_error, 1, "cuEventRecord"};
  free(0, 8);
  driver->answers.clear();
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(8, 2)}));
  EXPECT_EQ(manager->statistics().unfenced_frees, 1U);
}

TEST_F(ResidencyManager, BlockFreedInACaptureIsNeverDropped)
{
  make();
  allocate(0, 8);
  driver->capture = capture_state::capturing;
  free(0, 8);
  driver->capture = capture_state::none;
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, FenceOfAWholeBlockMakesUpForOneThatWasMissing)
{
  make();
  allocate(0, 8);
  driver->capture = capture_state::capturing;
  free(0, 8);
  driver->capture = capture_state::none;
  allocate(0, 8);
  free(0, 8);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{dropped(0, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, AllocationInADiscardedBlockWaitsForTheDiscard)
{
  make();
  allocate(0, 8);
  free(0, 8);
  allocate(8, 8);  // 0 to 7 are discarded
  driver->orders.clear();
  static_cast<void>(moves());
  allocate(0, 2);
  EXPECT_EQ(driver->orders,
            (std::vector<std::pair<stream_handle, stream_handle>>{{stream, discards}}));
  EXPECT_EQ(moves(), (calls{to_host(8, 2), renewed(0, 2)}));
}

TEST_F(ResidencyManager, DiscardIsIssuedOnlyOnceTheFreesBeforeItAreThrough)
{
  make();
  allocate(0, 8);
  free(0, 8);
  static_cast<void>(driver->take_calls());
  allocate(8, 1);
  std::vector<std::pair<std::string, stream_handle>> in_own;
  for (auto const& call : driver->take_calls()) {
    if (call.stream == discards || call.stream == frees) {
      in_own.emplace_back(call.name, call.stream);
    }
  }
  EXPECT_EQ(in_own,
            (std::vector<std::pair<std::string, stream_handle>>{
              {"synchronize", frees}, {"synchronize", discards}, {"discard", discards}}));
}

TEST_F(ResidencyManager, RequestThatIsLeftToFaultsWaitsForDiscardsOfItsBlocks)
{
  make();
  allocate(0, 8);
  free(0, 8);
  allocate(8, 8);  // 0 to 7 are discarded
  for (auto const large : {true, false}) {
    static_cast<void>(driver->take_calls());
    driver->capture = large ? capture_state::none : capture_state::capturing;
    allocate(0, large ? 9 : 8);
    EXPECT_EQ(driver->take_calls("synchronize").size(), large ? 1U : 0U);
  }
}

TEST_F(ResidencyManager, WithoutFetchesBlocksWhoseKernelsAreThroughLeaveWithoutAWait)
{
  fetch = false;
  make();
  allocate(0, 8);
  static_cast<void>(driver->take_calls());
  allocate(8, 1);
  EXPECT_EQ(driver->take_calls("synchronize").size(), 0U);
  EXPECT_EQ(manager->statistics().evicted_bytes, blocks(1));
}

TEST_F(ResidencyManager, WithoutFetchesBlocksThatKernelsMayUseAreWaitedFor)
{
  fetch                = false;
  driver->marks_passed = false;
  make();
  allocate(0, 8);
  static_cast<void>(driver->take_calls());
  allocate(8, 1);
  EXPECT_EQ(driver->take_calls("synchronize").size(), 1U);
}

TEST_F(ResidencyManager, LiveBlocksWhoseKernelsAreThroughLeaveWithoutAWait)
{
  make();
  allocate(0, 8);
  static_cast<void>(driver->take_calls());
  allocate(8, 1);
  EXPECT_EQ(driver->take_calls("synchronize").size(), 0U);
  EXPECT_EQ(manager->statistics().evicted_bytes, blocks(1));
}

TEST_F(ResidencyManager, LiveBlocksLeaveOnceTheProgramsLastKernelsAreThrough)
{
  driver->marks_passed = false;
  make();
  allocate(0, 8);
  static_cast<void>(driver->take_calls());
  allocate(8, 1);
  auto const found = driver->take_calls("synchronize");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].stream, stream);
}

TEST_F(ResidencyManager, AllocationElsewhereDoesNotWaitForDiscards)
{
  make();
  allocate(0, 8);
  free(0, 8);
  allocate(8, 4);
  driver->orders.clear();
  allocate(12, 2);
  EXPECT_TRUE(driver->orders.empty());
}

// Hints

TEST_F(ResidencyManager, EvictMovesWholeBlocksOnly)
{
  make();
  allocate(0, 4);
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict({slab_address + 256, blocks(3)}), blocks(2));
  EXPECT_EQ(moves(), (calls{to_host(1, 2)}));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(2));
}

TEST_F(ResidencyManager, PinnedBlocksStayAndTheBudgetIsExceededRatherThanAnErrorRaised)
{
  make();
  allocate(0, 8);
  manager->pin(at(0, 8));
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict(at(0, 8)), 0U);
  allocate(8, 1);
  EXPECT_EQ(moves(), (calls{renewed(8, 1)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.over_budget, 1U);
  EXPECT_EQ(counts.pinned_bytes, blocks(8));
  manager->unpin(at(0, 8));
  allocate(9, 1);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(9, 1)}));
}

TEST_F(ResidencyManager, RequestLargerThanTheBudgetIsLeftToFaults)
{
  make();
  allocate(0, 9);
  EXPECT_TRUE(moves().empty());
  EXPECT_EQ(manager->statistics().too_large, 1U);
}

TEST_F(ResidencyManager, NothingIsIssuedWhileAStreamCaptures)
{
  make();
  driver->capture = capture_state::capturing;
  allocate(0, 4);
  touch(0, 4);
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyManager, PrefetchIntoACaptureDoesNotTouchItsStream)
{
  make();
  allocate(0, 8);
  allocate(8, 8);
  static_cast<void>(driver->take_calls());
  driver->orders.clear();
  driver->capture = capture_state::capturing;
  manager->prefetch(at(0, 4), stream);
  for (auto const& call : driver->take_calls()) {
    EXPECT_EQ(call.name, "capturing");  // waiting for it, or ordering it, would end the capture
  }
  EXPECT_TRUE(driver->orders.empty());
  driver->capture = capture_state::none;
  manager->prefetch(at(0, 4), stream);
  EXPECT_EQ(moves(), (calls{to_host(8, 2), to_host(10, 2), fetched(0, 4)}));
}

// What others move, and what fails

TEST_F(ResidencyManager, BytesThatLeftUnaskedPutWhatIsThereInDoubt)
{
  make();
  allocate(0, 4);
  static_cast<void>(moves());
  driver->counted.device_to_host_bytes += 4096;
  touch(0, 4);
  EXPECT_EQ(moves(), (calls{fetched(0, 4)}));
  touch(0, 4);
  EXPECT_TRUE(moves().empty());
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(4));
}

TEST_F(ResidencyManager, BytesThatItMovedItselfPutNothingInDoubt)
{
  make();
  driver->on_call = [this](driver_call const& call) {
    if (call.device_id == location::host_id && call.name == "prefetch") {
      driver->counted.device_to_host_bytes += call.ranges[0].bytes;
    }
  };
  allocate(0, 4);
  allocate(4, 4);
  allocate(8, 4);
  static_cast<void>(moves());
  touch(4, 4);
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyManager, EvictionThatFailsLeavesTheBlockWhereItIs)
{
  make();
  allocate(0, 8);
  driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
  allocate(8, 2);
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.failed_calls, 1U);
  EXPECT_EQ(counts.last_failure.native_error, 2);
  EXPECT_EQ(counts.resident_bytes, blocks(10));
  driver->answers.clear();
  static_cast<void>(moves());
  allocate(10, 1);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), to_host(2, 1), renewed(10, 1)}));
}

TEST_F(ResidencyManager, EvictionThatFailsHalfwayPutsWhatIsThereInDoubt)
{
  make();
  allocate(0, 8);
  driver->on_call = [this](driver_call const& call) {
    if (call.name == "prefetch" && call.device_id == location::host_id) {
      driver->counted.device_to_host_bytes += call.ranges[0].bytes;
      driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
    }
  };
  EXPECT_EQ(manager->evict(at(0, 4)), 0U);
  driver->on_call = [](driver_call const&) {};
  driver->answers.clear();
  static_cast<void>(moves());
  touch(0, 4);
  EXPECT_EQ(moves(), (calls{fetched(0, 4)}));
}

TEST_F(ResidencyManager, DiscardThatFailsIsNotTakenForRoomAndTheBlockIsOrdered)
{
  make();
  allocate(0, 8);
  free(0, 8);
  driver->answers["discard"] = {status_code::driver_error, 1, "cuMemDiscardBatchAsync"};
  allocate(8, 2);
  driver->answers.clear();
  driver->orders.clear();
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(10));
  allocate(0, 1);
  EXPECT_EQ(driver->orders,
            (std::vector<std::pair<stream_handle, stream_handle>>{{stream, discards}}));
}

TEST_F(ResidencyManager, AdviceAboutOneBlockDoesNotMakeOthersLeaveByLibcuda)
{
  driver->facts.direct_migration = availability::yes();
  make();
  allocate(0, 8);
  adviser.advise(at(7), {true, std::nullopt});
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict(at(0, 1)), blocks(1));
  EXPECT_EQ(moves(), (calls{migrated_to_host(0, 1)}));
}

TEST_F(ResidencyManager, FreedSlabIsForgottenWithItsResidence)
{
  make();
  allocate(0, 4);
  manager->pin(at(0, 1));
  manager->on_slab_free(slab);
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.resident_bytes, 0U);
  EXPECT_EQ(counts.pinned_bytes, 0U);
}

// Ahead

TEST_F(ResidencyManager, WhatComesNextIsFetchedAheadAndWhatIsNeededLastLeaves)
{
  make(eviction_policy::repeat);
  for (std::size_t part = 0; part < 3; ++part) {
    allocate(part * 4, 4);
  }
  for (int round = 0; round < 12; ++round) {
    for (std::size_t part = 0; part < 3; ++part) {
      touch(part * 4, 4);
    }
  }
  EXPECT_TRUE(manager->statistics().foresees);
  static_cast<void>(manager->evict(at(8, 4)));
  static_cast<void>(manager->evict(at(0, 4)));
  static_cast<void>(moves());
  manager->run_pending();
  auto const found = moves();
  ASSERT_FALSE(found.empty());
  // The next use is of part 0: it comes in pieces, in a stream of its own.
  auto const arrivals = recording_driver::own(own_stream_use::arrivals);
  EXPECT_EQ(found[0], (driver_call{"prefetch", {at(0, 2)}, arrivals, 0}));
  EXPECT_GT(manager->statistics().fetched_ahead_bytes, 0U);
  touch(0, 4);
  EXPECT_GT(manager->statistics().ahead_used_bytes, 0U);
}

TEST_F(ResidencyManager, WithoutRepetitionNothingIsFetchedAhead)
{
  make(eviction_policy::repeat);
  for (std::size_t first = 0; first < 32; first += 4) {
    allocate(first, 4);
  }
  static_cast<void>(moves());
  manager->run_pending();
  for (auto const& call : moves()) {
    EXPECT_EQ(call.device_id, location::host_id);
  }
  EXPECT_FALSE(manager->statistics().foresees);
}

TEST_F(ResidencyManager, WhatOneCallTouchesDoesNotLeaveBeforeALaterUseIsMarked)
{
  make();
  allocate(0, 8);
  allocate(8, 1);  // short of room: the thread would evict down to the low watermark
  static_cast<void>(moves());
  use_event const uses[]{{use_kind::touch, at(1, 4), at(1).address},
                         {use_kind::touch, at(5, 4), at(5).address}};
  manager->on_touch(uses, stream);
  manager->run_pending();
  EXPECT_TRUE(moves().empty());
  allocate(9, 1);  // its mark lies behind the work of that call
  manager->run_pending();
  EXPECT_EQ(moves(), (calls{to_host(1, 1), renewed(9, 1), to_host(2, 1)}));
}

TEST_F(ResidencyManager, WhereTheDeadMakeRoomNoLiveBlockLeavesBeforeItMust)
{
  make();
  allocate(0, 8);
  free(0, 1);
  allocate(8, 1);
  manager->run_pending();
  EXPECT_EQ(moves(), (calls{renewed(0, 8), dropped(0, 1), renewed(8, 1)}));
  allocate(9, 1);  // no dead block is left: a live one leaves, and the next one before it must
  manager->run_pending();
  EXPECT_EQ(moves(), (calls{to_host(1, 1), renewed(9, 1), to_host(2, 1)}));
}

TEST_F(ResidencyManager, PendingWorkEvictsToTheLowWatermarkOnlyAfterAShortage)
{
  make();
  allocate(0, 8);
  static_cast<void>(moves());
  manager->run_pending();
  EXPECT_TRUE(moves().empty());  // it fits: nothing leaves for a watermark
  allocate(8, 1);
  static_cast<void>(moves());
  manager->run_pending();
  EXPECT_LE(manager->statistics().resident_bytes, manager->settings().low_bytes);
}

}  // namespace
}  // namespace rmm_uvm

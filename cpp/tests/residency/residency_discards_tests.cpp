// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Discards, and waits for kernels: the rules without which data would be lost.
#include "residency_manager_fixture.hpp"

#include <rmm_uvm/residency/discards.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::ResidencyManager;
using tests::slab_address;

/** @brief What the manager's own streams are told when blocks leave that were freed. */
class FreedBlocks : public ResidencyManager {
 protected:
  using in_streams = std::vector<std::pair<std::string, stream_handle>>;

  /** @brief Allocates; `driver_calls` are the moves, of all streams. @return those before it came
   */
  [[nodiscard]] in_streams calls_of_room_for(std::size_t first, std::size_t count)
  {
    static_cast<void>(driver->take_calls());
    allocate(first, count);
    in_streams in_own;
    driver_calls.clear();
    for (auto const& call : driver->take_calls()) {
      if (call.stream == discards || call.stream == frees) {
        in_own.emplace_back(call.name, call.stream);
      }
      if (call.name.starts_with("discard") || call.name == "prefetch") {
        driver_calls.push_back(call);
      }
    }
    // What was allocated is renewed in the same stream, between two waits.
    auto const came = std::find(
      in_own.begin(), in_own.end(), std::pair{std::string{"discard_and_prefetch"}, discards});
    EXPECT_EQ(in_own.end() - came, 2);
    in_own.erase(came - 1, in_own.end());
    return in_own;
  }

  calls driver_calls;
  in_streams const awaited{{"synchronize", frees},
                           {"synchronize", discards},
                           {"discard", discards},
                           {"synchronize", discards}};
  in_streams const not_awaited{
    {"synchronize", discards}, {"discard", discards}, {"synchronize", discards}};
};

TEST_F(ResidencyManager, DeadBlocksThatAreRankedLeaveInTheirTurnAndWithoutACopy)
{
  rank_dead = true;
  make();
  for (std::size_t first = 0; first < 8; first += 2) {
    allocate(first, 2);
  }
  auto const use_others = [this](int times) {
    for (int use = 0; use < times; ++use) {
      touch(2, 2);
      touch(6, 2);
    }
  };
  use_others(10);
  touch(4, 2);
  free(4, 2);
  static_cast<void>(moves());
  allocate(8, 2);  // what was used very long ago leaves, though it lives
  EXPECT_EQ(moves().front(), to_host(0, 2));
  use_others(10);
  static_cast<void>(moves());
  allocate(10, 2);
  EXPECT_EQ(moves().front(), dropped(4, 2));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.dropped_bytes, blocks(2));
  EXPECT_EQ(counts.evicted_bytes, blocks(2));
}

TEST_F(ResidencyManager, TwinWithoutRanksDropsDeadBlocksFirst)
{
  make();
  for (std::size_t first = 0; first < 8; first += 2) {
    allocate(first, 2);
  }
  free(4, 2);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves().front(), dropped(4, 2));
}

/** @brief A loop uses many more blocks than fit, beside four that it is handed out and frees. */
class LoopWithTemporaries : public ResidencyManager {
 protected:
  /** @return what was dropped in twenty rounds, once the order is known */
  [[nodiscard]] std::uint64_t dropped_bytes()
  {
    fetches_ahead = false;
    slab.bytes    = blocks(64);
    make(eviction_policy::repeat);
    for (std::size_t block = 0; block < used; block += 6) {
      allocate(block, 6);
    }
    std::uint64_t before = 0;
    for (int round = 0; round < 40; ++round) {
      if (round == 20) { before = manager->statistics().dropped_bytes; }
      for (std::size_t block = 0; block < used; ++block) {
        touch(block, 1);
        allocate(used, 2);
        free(used, 2);
        allocate(used + 2, 2);
        free(used + 2, 2);
      }
    }
    return manager->statistics().dropped_bytes - before;
  }

  // Each is used again so late that what is used soon stays, though it costs much less to have
  // again.
  static constexpr std::size_t used = 54;
};

TEST_F(LoopWithTemporaries, StayWhereTheyAreRanked)
{
  rank_dead = true;
  EXPECT_LE(dropped_bytes(), blocks(20));
}

TEST_F(LoopWithTemporaries, TwinWithoutRanksHasThemLeaveForEachPiece)
{
  EXPECT_GT(dropped_bytes(), blocks(100));
}

/** @brief A pool that grows past the budget after something was freed: without a fence. */
class FreesBeforePressure : public ResidencyManager {
 protected:
  void make_small()
  {
    slab.bytes = blocks(6);
    make();
  }
  void grow() { ledger.add_slab({slab_address + blocks(6), blocks(26)}); }
  /** @return the first that leaves for another block: of 0 and 1 that live, or 2 and 3 that do not
   */
  [[nodiscard]] driver_call first_to_leave()
  {
    make_small();
    allocate(0, 2);
    allocate(2, 2);
    free(2, 2);
    allocate(4, 2);
    grow();
    allocate(6, 2);
    touch(4, 4);
    static_cast<void>(moves());
    allocate(8, 1);
    return moves().front();
  }
  /** @return what is dropped first: of 0 to 3, freed before the pool grew, or 4, freed after */
  [[nodiscard]] driver_call first_dropped(stream_handle freed_in)
  {
    make_small();
    manager->on_allocate(at(0, 4), nullptr);
    manager->on_free(at(0, 4), freed_in);
    grow();
    manager->on_allocate(at(4, 4), nullptr);
    manager->on_free(at(4, 1), nullptr);
    touch(5, 3);
    static_cast<void>(moves());
    manager->on_allocate(at(8, 3), nullptr);
    return moves().front();
  }
};

TEST_F(FreesBeforePressure, RankedDeadBlockThatMayNotBeDroppedLeavesInItsTurn)
{
  rank_dead = true;
  EXPECT_EQ(first_to_leave(), to_host(0, 1));
}

TEST_F(FreesBeforePressure, TwinWithoutRanksHasItLeaveFirst)
{
  EXPECT_EQ(first_to_leave(), to_host(2, 1));
}

TEST_F(FreesBeforePressure, AreFencedByTheFirstFenceInTheDefaultStream)
{
  EXPECT_EQ(first_dropped(nullptr), dropped(0, 1));
}

TEST_F(FreesBeforePressure, TwinOfAnotherStreamIsNot)
{
  EXPECT_EQ(first_dropped(stream), dropped(4, 1));
}

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
    EXPECT_NE(earlier, discards);
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
  EXPECT_EQ(moves(), (calls{fetched(8, 1)}));
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
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
  EXPECT_STREQ(manager->statistics().last_failure.call, "cuEventRecord");
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

TEST_F(ResidencyManager, AllocationInADiscardedBlockHasItsStreamWaitForNothing)
{
  make();
  allocate(0, 8);
  free(0, 8);
  allocate(8, 8);  // 0 to 7 are discarded
  driver->orders.clear();
  static_cast<void>(moves());
  allocate(0, 2);
  EXPECT_TRUE(driver->orders.empty());  // the discard has happened
  EXPECT_EQ(moves(), (calls{to_host(8, 2), renewed(0, 2)}));
}

TEST_F(FreedBlocks, DiscardIsIssuedOnlyOnceTheFreesBeforeItAreThrough)
{
  driver->marks_passed = false;
  make();
  allocate(0, 8);
  free(0, 8);
  EXPECT_EQ(calls_of_room_for(8, 1), awaited);
}

TEST_F(FreedBlocks, DiscardDoesNotWaitForFreesWhoseMarkIsPassed)
{
  make();
  allocate(0, 8);
  free(0, 8);
  EXPECT_EQ(calls_of_room_for(8, 1), not_awaited);
}

TEST_F(FreedBlocks, SmallFreesAreAwaitedUntilEnoughIsFreedForAMark)
{
  make();
  allocate(0, 8);
  free(0, 7);
  EXPECT_EQ(calls_of_room_for(8, 1), awaited);
  free(7, 1);
  EXPECT_EQ(calls_of_room_for(9, 2), not_awaited);
}

TEST_F(FreedBlocks, BlockFreedBehindTheMarkIsNotTakenForDone)
{
  make();
  allocate(0, 8);
  free(0, 8);  // marked
  allocate(0, 4);
  free(0, 4);  // not marked
  EXPECT_EQ(calls_of_room_for(8, 4), not_awaited);
  EXPECT_EQ(driver_calls, (calls{dropped(4, 4), renewed(8, 4)}));
  EXPECT_EQ(calls_of_room_for(12, 2), awaited);
  EXPECT_EQ(driver_calls, (calls{dropped(0, 2), renewed(12, 2)}));
}

TEST_F(FreedBlocks, FreesAreAwaitedWhereNoMarkCouldBeMade)
{
  make();
  allocate(0, 8);
  driver->answers["mark"] = {status_code::driver_error, 1, "cuEventRecord"};
  free(0, 8);
  driver->answers.clear();
  EXPECT_EQ(calls_of_room_for(8, 1), awaited);
}

TEST_F(FreedBlocks, MarkBehindOneThatCouldNotBeMadeTellsOfBoth)
{
  make();
  allocate(0, 8);
  driver->answers["mark"] = {status_code::driver_error, 1, "cuEventRecord"};
  free(0, 8);
  driver->answers.clear();
  allocate(0, 8);
  free(0, 8);
  EXPECT_EQ(calls_of_room_for(8, 1), not_awaited);
}

TEST_F(FreedBlocks, MarksBeyondTheirNumberAreMadeAnewAndTellTheSame)
{
  for (bool const passed : {false, true}) {
    driver->marks_passed = false;
    make();
    driver->marks.clear();
    for (int round = 0; round < 40; ++round) {
      allocate(0, 8);
      free(0, 8);
    }
    std::set<std::size_t> numbers;
    for (auto const& [number, where] : driver->marks) {
      if (where == frees) { numbers.insert(number); }
      EXPECT_EQ(where == frees, number >= 64) << number;  // those before are of uses
    }
    EXPECT_EQ(numbers.size(), mark_count - 64);
    EXPECT_EQ(*numbers.rbegin(), mark_count - 1);
    driver->marks_passed = passed;
    EXPECT_EQ(calls_of_room_for(8, 1), passed ? not_awaited : awaited);
    manager.reset();
    ledger.remove_slab(slab.address);
  }
}

TEST_F(FreedBlocks, NumberOfAFreeNeverWrapsAround)
{
  // Of 32 bits, each of these would look like one that is done.
  for (auto const number : {std::uint64_t{1} << 32U, (std::uint64_t{1} << 31U) + 2}) {
    make();
    allocate(0, 8);
    free(0, 8);
    {
      ledger_view view{ledger};
      view.each(at(0, 8), [&](block_record& block, memory_range) { block.freed = number; });
    }
    EXPECT_EQ(calls_of_room_for(8, 1), awaited);
    manager.reset();
    ledger.remove_slab(slab.address);
  }
}

TEST_F(ResidencyManager, DeadBlocksAreHandedOutAsTheyAreWhileTheirStreamIsBusy)
{
  make();
  allocate(0, 4);
  free(0, 4);  // too little for a mark
  EXPECT_EQ(manager->evict(at(0, 4)), blocks(4));
  driver->streams_idle = false;
  static_cast<void>(moves());
  allocate(0, 2);
  EXPECT_EQ(moves(), (calls{fetched(0, 2)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.undiscarded_bytes, blocks(2));
  EXPECT_EQ(counts.undiscarded_copied_bytes, blocks(2));
  EXPECT_EQ(counts.fetched_bytes, blocks(2));
}

TEST_F(ResidencyManager, DeadBlocksAreDiscardedBeforeTheyAreHandedOutOnAnIdleStream)
{
  make();
  allocate(0, 4);
  free(0, 4);
  EXPECT_EQ(manager->evict(at(0, 4)), blocks(4));
  static_cast<void>(moves());
  allocate(0, 2);
  EXPECT_EQ(moves(), (calls{renewed(0, 2)}));
  EXPECT_EQ(manager->statistics().undiscarded_bytes, 0U);
}

TEST_F(ResidencyManager, DeadBlocksWhoseFreesAreMarkedAreDiscardedOnABusyStream)
{
  make();
  allocate(0, 8);
  free(0, 8);  // marked
  EXPECT_EQ(manager->evict(at(0, 8)), blocks(8));
  driver->streams_idle = false;
  static_cast<void>(moves());
  allocate(0, 2);
  EXPECT_EQ(moves(), (calls{renewed(0, 2)}));
  driver->marks_passed = false;
  allocate(2, 2);  // of the same free, which is known to be done
  EXPECT_EQ(manager->statistics().undiscarded_bytes, 0U);
}

TEST_F(ResidencyManager, DeadBlocksThatAreNotToBeDroppedAreRenewedAllTheSame)
{
  discard_dead = false;
  make();
  allocate(0, 8);
  free(0, 8);  // marked
  allocate(8, 8);
  driver->streams_idle = false;
  static_cast<void>(moves());
  allocate(0, 2);
  EXPECT_EQ(moves(), (calls{to_host(8, 2), renewed(0, 2)}));
  EXPECT_EQ(manager->statistics().dropped_bytes, 0U);
}

TEST_F(ResidencyManager, DeadBlocksThatAreOnTheDeviceAreNotCopiedWhereTheyAreNotDiscarded)
{
  make();
  allocate(0, 4);
  free(0, 4);
  driver->streams_idle                 = false;
  driver->counted.device_to_host_bytes = 4096;  // somebody moved something: all is in doubt
  allocate(0, 2);
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.undiscarded_bytes, blocks(2));
  EXPECT_EQ(counts.undiscarded_copied_bytes, 0U);
}

TEST_F(ResidencyManager, NewBlocksAreRenewedThoughTheirStreamIsBusy)
{
  make();
  driver->streams_idle = false;
  driver->marks_passed = false;
  allocate(0, 4);
  EXPECT_EQ(moves(), (calls{renewed(0, 4)}));
  EXPECT_EQ(manager->statistics().undiscarded_bytes, 0U);
}

TEST_F(ResidencyManager, WithoutFetchesBlocksWhoseKernelsAreThroughLeaveWithoutAWait)
{
  fetch = false;
  make();
  allocate(0, 8);
  static_cast<void>(driver->take_calls());
  allocate(8, 1);
  EXPECT_EQ(waits_for(stream), 0);
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
  EXPECT_EQ(waits_for(stream), 0);
  EXPECT_EQ(manager->statistics().evicted_bytes, blocks(1));
}

TEST_F(ResidencyManager, LiveBlocksLeaveOnceTheProgramsLastKernelsAreThrough)
{
  driver->marks_passed = false;
  make();
  allocate(0, 8);
  static_cast<void>(driver->take_calls());
  allocate(8, 1);
  EXPECT_EQ(waits_for(stream), 1);
}

TEST_F(ResidencyManager, DiscardsOfTwoThreadsDoNotComeBetweenEachOthersWaits)
{
  make();
  allocate(0, 8);
  free(0, 8);
  static_cast<void>(driver->take_calls());
  std::thread other;
  driver->on_call = [&](tests::driver_call const& call) {
    if (call.name == "synchronize" && call.stream == discards && !other.joinable()) {
      other = std::thread{[&] {
        auto const range = at(30);
        EXPECT_TRUE(discard_at_once(*driver, {&range, 1}).ok());
      }};
      std::this_thread::sleep_for(std::chrono::milliseconds{50});  // it would be there by then
    }
  };
  allocate(8, 2);  // in the place of two that are dropped
  ASSERT_TRUE(other.joinable());
  other.join();
  driver->on_call = [](tests::driver_call const&) {};
  std::vector<std::string> in_their_stream;
  for (auto const& call : driver->take_calls()) {
    if (call.stream == discards) { in_their_stream.push_back(call.name); }
  }
  ASSERT_EQ(in_their_stream.size(), 9U);  // dropped, renewed, and the other thread's
  for (std::size_t call = 0; call < in_their_stream.size(); ++call) {
    EXPECT_EQ(in_their_stream[call] == "synchronize", call % 3 != 1);
  }
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

}  // namespace
}  // namespace rmm_uvm

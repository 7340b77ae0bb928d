// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Owners want their memory back.
#include "../support/board_directory.hpp"
#include "residency_neighbors_fixture.hpp"

#include <rmm_uvm/ipc/board_lender.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::ResidencyNeighbors;

TEST_F(ResidencyNeighbors, WhatAnOwnerNeedsGoesToTheHostAndNoMore)
{
  evict_first(4);
  static_cast<void>(moves());
  lends->too_much[1] = blocks(3);
  manager->run_pending();
  auto const made = moves();
  ASSERT_FALSE(made.empty());
  EXPECT_TRUE(std::all_of(made.begin(), made.end(), [](driver_call const& call) {
    return call.device_id == location::host_id;
  }));
  auto const found = manager->statistics();
  EXPECT_EQ(found.given_back_bytes, blocks(3));
  EXPECT_EQ(found.given_back_at_once_bytes, 0U);
  EXPECT_EQ(lends->claimed[1], blocks(1));
  touch(0, 4);  // all of it is found again, wherever it went
  EXPECT_EQ(manager->statistics().harvested_bytes, 0U);
}

TEST_F(ResidencyNeighbors, DeadBlocksAreGivenBackFirstAndWithoutACopy)
{
  evict_first(4);
  static_cast<void>(moves());
  free(2, 2);
  static_cast<void>(moves());
  lends->too_much[1] = blocks(2);
  manager->run_pending();
  EXPECT_EQ(moves(), calls{dropped(2, 2)});
  auto const found = manager->statistics();
  EXPECT_EQ(found.given_back_at_once_bytes, blocks(2));
  EXPECT_EQ(lends->claimed[1], blocks(2));
}

TEST_F(ResidencyNeighbors, OwnerThatDoesNotLendGetsItsReserveBack)
{
  evict_first(4);
  static_cast<void>(moves());
  auto& there      = driver->neighbor_level;
  there.free_bytes = there.total_bytes / 16 - blocks(1) - 1;
  manager->run_pending();  // what leaves may stay the driver's: free memory does not show it
  EXPECT_EQ(manager->statistics().given_back_bytes, blocks(2));
}

TEST_F(ResidencyNeighbors, WhatWasGivenBackIsPartOfTheReserve)
{
  lender    = nullptr;  // by free memory alone
  neighbors = {{1}};
  evict_first(4);
  touch(0, 2);
  auto& there      = driver->neighbor_level;
  there.free_bytes = there.total_bytes / 16 - blocks(1);
  manager->run_pending();
  EXPECT_EQ(manager->statistics().given_back_bytes, blocks(1));
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));  // for which memory is kept there
  EXPECT_EQ(moves(), calls{to(1, 0, 2)});
}

TEST_F(ResidencyNeighbors, GivingBackThatFailsKeepsTheClaimAndIsCounted)
{
  evict_first(1);
  lends->too_much[1]          = blocks(1);
  driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
  manager->run_pending();
  EXPECT_EQ(lends->claimed[1], blocks(1));
  EXPECT_EQ(manager->statistics().given_back_bytes, 0U);
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
}

TEST_F(ResidencyNeighbors, BudgetThatEndsLeavesNoClaimWhereBlocksCannotBeMoved)
{
  for (bool const fails : {false, true}) {
    evict_first(4);
    EXPECT_EQ(lends->claimed[1], blocks(4));
    if (fails) {
      driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
    }
    manager->retire([] {});
    EXPECT_EQ(manager->statistics().failed_calls, fails ? 1U : 0U);
    EXPECT_EQ(lends->claimed[1], 0U) << "fails: " << fails;
    EXPECT_EQ(manager->statistics().harvested_bytes, 0U);
    manager.reset();
    ledger.remove_slab(slab.address);
  }
}

TEST_F(ResidencyNeighbors, PinnedBlocksComeToTheDeviceWhereTheirOwnerNeedsTheMemory)
{
  evict_first(2);
  manager->pin(at(0));
  lends->too_much[1] = blocks(2);
  static_cast<void>(moves());
  manager->run_pending();
  auto const arrivals = tests::recording_driver::own(own_stream_use::arrivals);
  driver_call const home{"prefetch", {at(0)}, arrivals, 0};
  EXPECT_EQ(moves(), (calls{to_host(1, 1), home}));  // those that are not pinned first
  auto const found = manager->statistics();
  EXPECT_EQ(found.given_back_bytes, blocks(2));
  EXPECT_EQ(found.harvested_bytes, 0U);
  EXPECT_EQ(lends->claimed[1], 0U);
}

TEST_F(ResidencyNeighbors, PinnedBlocksGoToTheHostWhereTheDeviceHasNoRoomForAllThatIsPinned)
{
  evict_first(1);
  allocate(8, 1);
  manager->pin(at(0, 9));
  lends->too_much[1] = blocks(1);
  static_cast<void>(moves());
  manager->run_pending();
  EXPECT_EQ(moves(), calls{to_host(0, 1)});
  EXPECT_EQ(manager->statistics().pinned_bytes, blocks(9));
}

TEST_F(ResidencyNeighbors, PinnedBlocksThatAreDeadAreDroppedLikeOthers)
{
  evict_first(1);
  manager->pin(at(0));
  free(0, 1);
  static_cast<void>(moves());
  lends->too_much[1] = blocks(1);
  manager->run_pending();
  EXPECT_EQ(moves(), calls{dropped(0, 1)});
}

TEST_F(ResidencyNeighbors, DeadBlocksThatCannotBeDroppedAreCopiedAndKeepNothingThere)
{
  evict_first(2);
  free(0, 1);
  static_cast<void>(moves());
  driver->answers["discard"] = {status_code::driver_error, 1, "cuMemDiscardBatchAsync"};
  lends->too_much[1]         = blocks(2);
  manager->run_pending();
  EXPECT_EQ(manager->statistics().given_back_bytes, blocks(2));
  EXPECT_EQ(lends->claimed[1], 0U);
}

TEST_F(ResidencyNeighbors, CopiesThatCannotBeLetGoOfAreMovedAndKeepNothingThere)
{
  copy_beside = true;
  evict_first(1);
  for (int use = 0; use < 64; ++use) {
    touch(7, 1);
  }
  manager->run_pending();
  ASSERT_EQ(manager->statistics().copied_beside_bytes, blocks(1));
  int refused     = 0;
  driver->on_call = [&](driver_call const& call) {  // the first time only
    bool const lets_go = call.advice == memory_advice::unset_read_mostly && refused++ == 0;
    driver->answers.erase("advise");
    if (lets_go) { driver->answers["advise"] = {status_code::driver_error, 1, "cuMemAdvise"}; }
  };
  lends->too_much[1] = blocks(1);
  manager->run_pending();
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
  EXPECT_EQ(manager->statistics().given_back_bytes, blocks(1));
  EXPECT_EQ(lends->claimed[1], 0U);
}

TEST_F(ResidencyNeighbors, WhatOthersGaveBackIsNotGivenBackAgain)
{
  lender    = nullptr;  // by free memory alone
  neighbors = {{1}};
  budget    = blocks(32);
  make();
  allocate(0, 32);
  EXPECT_EQ(manager->evict(at(0, 32)), blocks(32));
  auto& there        = driver->neighbor_level;
  auto const reserve = there.total_bytes / 16;
  there.free_bytes   = reserve - blocks(24);
  ASSERT_TRUE(manager->run_pending_piece());
  auto const first = manager->statistics().given_back_bytes;
  ASSERT_LT(first, blocks(24));
  there.free_bytes = reserve - blocks(1);
  manager->run_pending();  // all but a block is free again: what we gave, and others
  EXPECT_EQ(manager->statistics().given_back_bytes, first + blocks(1));
}

TEST_F(ResidencyNeighbors, SeveralWhoHoldMemoryOfAnOwnerThatIsNotOnTheBoardGiveItBackOnceTogether)
{
  tests::board_directory const directory;
  std::vector<ipc::board_lender::named_device> const names{{1, tests::device_named(1)}};
  neighbors = {{1}};
  budget    = blocks(16);
  slab      = {tests::slab_address, blocks(16)};
  std::vector<std::unique_ptr<residency_ledger>> ledgers;
  std::vector<std::unique_ptr<residency_manager>> harvesters;
  for (int i = 0; i < 3; ++i) {
    auto settings       = residency_settings::of(budget);
    settings.background = false;
    settings.policy     = eviction_policy::lru;
    settings.neighbors  = neighbors;
    settings.lender     = std::make_shared<ipc::board_lender>(directory.join(), names);
    ledgers.push_back(std::make_unique<residency_ledger>());
    ledgers.back()->add_slab(slab);
    harvesters.push_back(std::make_unique<residency_manager>(driver, *ledgers.back(), settings));
    harvesters.back()->on_allocate(at(0, 16), stream);
    ASSERT_EQ(harvesters.back()->evict(at(0, 16)), blocks(16));
  }
  driver->neighbor_level.free_bytes = driver->neighbor_level.total_bytes / 16 - blocks(12);
  std::size_t together              = 0;
  for (auto const& each : harvesters) {  // what leaves stays the driver's: nobody sees it
    each->run_pending();
    each->run_pending();
    together += each->statistics().given_back_bytes;
  }
  EXPECT_GE(together, blocks(12));
  EXPECT_LE(together, blocks(14));  // rounded up to blocks
}

}  // namespace
}  // namespace rmm_uvm

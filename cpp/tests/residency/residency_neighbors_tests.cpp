// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Several neighbours, whose owners lend memory.
#include "residency_neighbors_fixture.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::ResidencyNeighbors;

TEST_F(ResidencyNeighbors, WhatOneTakesOnlyInPartGoesToTheNextAndThenToTheHost)
{
  lends->lends = {{1, blocks(2)}, {2, blocks(1)}};
  evict_first(4);
  // The last ones stay for the next round: who leaves first was chosen in that order.
  EXPECT_EQ(moves(), (calls{to(1, 0, 2), to(2, 2, 1), to_host(3, 1)}));
  auto const found = manager->statistics();
  EXPECT_EQ(found.evicted_bytes, blocks(4));
  EXPECT_EQ(found.neighbor_bytes, blocks(3));
  EXPECT_EQ(found.harvested_bytes, blocks(3));
  EXPECT_EQ(lends->there, (std::map<int, std::size_t>{{1, blocks(2)}, {2, blocks(1)}}));
}

TEST_F(ResidencyNeighbors, LimitsHoldWhateverIsLent)
{
  neighbors = {{1, blocks(1)}, {2, blocks(2) + 1}};
  evict_first(4);
  auto const made = moves();
  EXPECT_EQ(lends->claimed, (std::map<int, std::size_t>{{1, blocks(1)}, {2, blocks(2)}}));
  EXPECT_EQ(made.back(), to_host(3, 1));
}

TEST_F(ResidencyNeighbors, WhatIsFetchedBackIsReleased)
{
  evict_first(2);
  static_cast<void>(moves());
  touch(0, 2);
  EXPECT_EQ(moves(), (calls{fetched(0, 2)}));
  EXPECT_EQ(lends->claimed[1] + lends->claimed[2], 0U);
  auto const found = manager->statistics();
  EXPECT_EQ(found.from_neighbor_bytes, blocks(2));
  EXPECT_EQ(found.harvested_bytes, 0U);
  EXPECT_EQ(found.peak_harvested_bytes, blocks(2));
}

TEST_F(ResidencyNeighbors, WhatCouldNotBeFetchedBackIsStillThereAndHeld)
{
  evict_first(4);
  driver->answers["prefetch"] = {status_code::driver_error, 1, "cuMemPrefetchAsync"};
  manager->prefetch(at(0, 2), stream);
  EXPECT_EQ(lends->claimed[1], blocks(4));
  auto const failed = manager->statistics();
  EXPECT_EQ(failed.harvested_bytes, blocks(4));
  EXPECT_EQ(failed.resident_bytes, blocks(4));
  EXPECT_EQ(failed.from_neighbor_bytes, 0U);
  driver->answers.clear();
  manager->prefetch(at(0, 2), stream);
  EXPECT_EQ(lends->claimed[1], blocks(2));
  EXPECT_EQ(manager->statistics().from_neighbor_bytes, blocks(2));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(6));
}

TEST_F(ResidencyNeighbors, WhatComesFromSeveralPlacesComesInCallsOfEach)
{
  lends->lends = {{1, blocks(1)}, {2, blocks(1)}};
  evict_first(3);
  static_cast<void>(moves());
  touch(0, 3);
  EXPECT_EQ(moves(), (calls{fetched(2, 1), fetched(0, 1), fetched(1, 1)}));
}

TEST_F(ResidencyNeighbors, SlabThatGoesReleasesWhatLiesOnNeighbours)
{
  evict_first(2);
  manager->on_slab_free(slab);
  EXPECT_EQ(lends->claimed[1] + lends->claimed[2], 0U);
  EXPECT_EQ(manager->statistics().harvested_bytes, 0U);
}

TEST_F(ResidencyNeighbors, BusyNeighboursAreLeftAlone)
{
  lends->at_work[1] = true;
  evict_first(1);
  EXPECT_EQ(moves(), calls{to(2, 0, 1)});
  lends->at_work[2] = true;
  EXPECT_EQ(manager->evict(at(1)), blocks(1));
  EXPECT_EQ(moves(), calls{to_host(1, 1)});
  EXPECT_EQ(manager->statistics().held_back, 1U);
}

TEST_F(ResidencyNeighbors, MoveThatFailsReleasesItsClaimAndGivesTheNeighbourUp)
{
  make();
  allocate(0, 8);
  static_cast<void>(moves());
  driver->answers["prefetch"] = {status_code::driver_error, 2, "cuMemPrefetchAsync"};
  EXPECT_EQ(manager->evict(at(0)), 0U);
  EXPECT_EQ(moves(), (calls{to(1, 0, 1), to(2, 0, 1), to_host(0, 1)}));  // one after the other
  EXPECT_EQ(lends->claimed[1] + lends->claimed[2], 0U);
  driver->answers.clear();
  EXPECT_EQ(manager->evict(at(0)), blocks(1));
  EXPECT_EQ(moves(), calls{to_host(0, 1)});
}

TEST_F(ResidencyNeighbors, MemoryThatIsKeptForABlockIsRoomForThatBlockOnly)
{
  neighbors = {{1, blocks(2)}};
  evict_first(2);
  touch(0, 2);  // back, but the kernel driver keeps their memory there
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict(at(2)), blocks(1));
  EXPECT_EQ(moves(), calls{to_host(2, 1)});
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  EXPECT_EQ(moves(), calls{to(1, 0, 2)});
}

TEST_F(ResidencyNeighbors, MemoryThatIsKeptForABlockNeedNotBeFree)
{
  lender = nullptr;  // by free memory alone
  evict_first(1);
  touch(0, 1);
  static_cast<void>(moves());
  driver->neighbor_level.free_bytes = driver->neighbor_level.total_bytes / 16;
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  EXPECT_EQ(moves(), (calls{to(1, 0, 1), to_host(1, 1)}));
}

TEST_F(ResidencyNeighbors, LoadThatCannotBeReadIsCountedAndTheNeighbourTakesMemory)
{
  driver->answers["read_neighbor_load"] = {status_code::driver_error, 999, "read_neighbor_load"};
  evict_first(1);
  EXPECT_EQ(moves(), calls{to(1, 0, 1)});
  EXPECT_EQ(manager->statistics().failed_calls, 2U);  // of both neighbours
  EXPECT_STREQ(manager->statistics().last_failure.call, "read_neighbor_load");
}

TEST_F(ResidencyNeighbors, LoadThatTheDriverNeverTellsIsNoFailure)
{
  evict_first(1);
  EXPECT_EQ(manager->statistics().failed_calls, 0U);
}

TEST_F(ResidencyNeighbors, NeighboursWhoseLinksAreBusyAreLeftAlone)
{
  for (double const link : {0.1, 0.9}) {
    lends->lends.clear();  // nothing moves: what the links carry is not ours
    driver->loads = {{1, {1.0, 1.0, link}}, {2, {std::nullopt, std::nullopt, link}}};
    make();
    allocate(0, 8);
    for (std::size_t block = 0; block < 4; ++block) {
      EXPECT_EQ(manager->evict(at(block)), blocks(1));
      std::this_thread::sleep_for(std::chrono::milliseconds{21});
    }
    EXPECT_EQ(manager->statistics().held_back, link > 0.5 ? 2U : 0U);  // three looks decide
    manager.reset();
    ledger.remove_slab(slab.address);
  }
}

}  // namespace
}  // namespace rmm_uvm

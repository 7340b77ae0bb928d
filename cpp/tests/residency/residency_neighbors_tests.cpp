// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Several neighbours, whose owners lend memory and want it back.
#include "residency_manager_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::ResidencyManager;

/** @brief Lends what the test says, and remembers what it was told. */
class noting_lender final : public neighbor_lender {
 public:
  std::map<int, std::size_t> lends;     ///< most that is held; nothing where there is none
  std::map<int, std::size_t> claimed;   ///< and not released
  std::map<int, std::size_t> there;     ///< placed and not released
  std::map<int, std::size_t> too_much;  ///< what `excess` answers
  std::map<int, bool> at_work;          ///< what `busy` answers
  std::vector<std::size_t> offers;      ///< of the manager's own device
  std::size_t others_hold{0};           ///< what `claimed_by_others` answers
  int others_leave_after{0};            ///< so many looks, if any, they hold nothing any more

  std::size_t claim(int device_id, std::size_t bytes, std::size_t, std::size_t) noexcept override
  {
    auto const room    = lends[device_id] - std::min(lends[device_id], claimed[device_id]);
    auto const granted = std::min(bytes, room);
    claimed[device_id] += granted;
    return granted;
  }
  void placed(int device_id, std::size_t bytes) noexcept override { there[device_id] += bytes; }
  void release(int device_id, std::size_t bytes) noexcept override
  {
    claimed[device_id] -= bytes;
    there[device_id] -= std::min(there[device_id], bytes);
    too_much[device_id] -= std::min(too_much[device_id], bytes);
  }
  void cancel(int device_id, std::size_t bytes) noexcept override { release(device_id, bytes); }
  std::size_t excess(int device_id, std::size_t shortage_bytes) noexcept override
  {
    return std::max(too_much[device_id], shortage_bytes);
  }
  std::size_t held(int device_id) noexcept override { return claimed[device_id]; }
  bool offer(int, std::size_t bytes) noexcept override
  {
    offers.push_back(bytes);
    return true;
  }
  void withdraw(int) noexcept override { offers.clear(); }
  std::size_t claimed_by_others(int) noexcept override
  {
    if (others_leave_after > 0) {
      --others_leave_after;
      if (others_leave_after == 0) { others_hold = 0; }
    }
    return others_hold;
  }
  bool busy(int device_id) noexcept override { return at_work[device_id]; }
};

class ResidencyNeighbors : public ResidencyManager {
 protected:
  void SetUp() override
  {
    neighbors    = {{1}, {2}};
    lender       = lends;
    lends->lends = {{1, blocks(16)}, {2, blocks(16)}};
  }
  [[nodiscard]] driver_call to(int device_id, std::size_t first, std::size_t count) const
  {
    return {"prefetch", {at(first, count)}, evictions, device_id};
  }
  /** @brief Eight blocks are on the device, and the first `count` of them leave. */
  void evict_first(std::size_t count)
  {
    make();
    allocate(0, 8);
    static_cast<void>(moves());
    EXPECT_EQ(manager->evict(at(0, count)), blocks(count));
  }

  std::shared_ptr<noting_lender> lends{std::make_shared<noting_lender>()};
};

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

TEST_F(ResidencyNeighbors, WhatComesFromSeveralPlacesComesInCallsOfEach)
{
  lends->lends = {{1, blocks(1)}, {2, blocks(1)}};
  evict_first(3);
  static_cast<void>(moves());
  touch(0, 3);
  EXPECT_EQ(moves(), (calls{fetched(2, 1), fetched(0, 1), fetched(1, 1)}));
}

TEST_F(ResidencyNeighbors, BurstFromTheHostComesInPartByWayOfANeighbour)
{
  driver->facts.direct_migration = availability::yes();
  driver->direct_neighbors       = true;
  rates     = {50'000'000'000, 25'000'000'000, 200'000'000'000, 200'000'000'000};
  multipath = true;
  slab      = {tests::slab_address, blocks(128)};
  budget    = blocks(96);
  neighbors = {{1}};
  lends->lends.clear();
  make();
  allocate(0, 64);
  EXPECT_EQ(manager->evict(at(0, 64)), blocks(64));  // to the host: nobody lends
  lends->lends = {{1, blocks(16)}};
  static_cast<void>(moves());
  touch(0, 64);
  std::size_t here   = 0;
  std::size_t beside = 0;
  for (auto const& call : moves()) {
    EXPECT_EQ(call.name, "migrate");
    (call.device_id == 1 ? beside : here) += call.ranges.front().bytes;
  }
  EXPECT_EQ(here, blocks(64));
  EXPECT_NEAR(static_cast<double>(beside),
              static_cast<double>(blocks(64)) * 4 / 9,
              static_cast<double>(blocks(4)));
  EXPECT_EQ(manager->statistics().staged_bytes, beside);
  EXPECT_EQ(lends->claimed[1], 0U);
}

TEST_F(ResidencyNeighbors, BurstComesFromTheHostAloneWhereTheNeighbourHasNoRoom)
{
  driver->facts.direct_migration = availability::yes();
  driver->direct_neighbors       = true;
  rates     = {50'000'000'000, 25'000'000'000, 200'000'000'000, 200'000'000'000};
  multipath = true;
  slab      = {tests::slab_address, blocks(128)};
  budget    = blocks(96);
  lends->lends.clear();
  make();
  allocate(0, 64);
  EXPECT_EQ(manager->evict(at(0, 64)), blocks(64));
  lends->lends = {{1, blocks(15)}};
  touch(0, 64);
  EXPECT_EQ(manager->statistics().staged_bytes, 0U);
  EXPECT_EQ(manager->statistics().fetched_bytes, blocks(64));
  EXPECT_EQ(lends->claimed[1], 0U);
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

TEST_F(ResidencyNeighbors, PinnedBlocksStayOnTheNeighbour)
{
  evict_first(1);
  manager->pin(at(0));
  lends->too_much[1] = blocks(1);
  static_cast<void>(moves());
  manager->run_pending();
  EXPECT_TRUE(moves().empty());
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

TEST_F(ResidencyNeighbors, WhatTheBudgetHasLeftIsOfferedLessAReserve)
{
  offers_memory = true;
  make();
  EXPECT_EQ(lends->offers, (std::vector{blocks(7)}));  // a 16th of 8 blocks stays
  allocate(0, 3);
  EXPECT_EQ(lends->offers.back(), blocks(4));
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  EXPECT_EQ(lends->offers.back(), blocks(6));
  allocate(8, 8);
  EXPECT_EQ(lends->offers.back(), 0U);
  manager->on_slab_free(slab);
  EXPECT_EQ(lends->offers.back(), blocks(7));
  manager.reset();
  EXPECT_TRUE(lends->offers.empty());  // withdrawn
}

TEST_F(ResidencyNeighbors, ProgramWaitsUntilOthersHaveLeftWhatItNeeds)
{
  offers_memory = true;
  make();
  lends->others_hold        = blocks(6);
  lends->others_leave_after = 3;
  allocate(0, 2);
  EXPECT_EQ(manager->statistics().reclaims, 0U);  // there is room beside them
  lends->others_leave_after = 3;
  allocate(2, 1);
  EXPECT_EQ(manager->statistics().reclaims, 1U);
  EXPECT_EQ(lends->others_hold, 0U);
  EXPECT_EQ(moves().back(), renewed(2, 1));
}

TEST_F(ResidencyNeighbors, ProgramGoesOnWhereOthersDoNotLeaveInTime)
{
  offers_memory = true;
  make();
  lends->others_hold = blocks(8);
  allocate(0, 1);
  EXPECT_EQ(moves(), calls{renewed(0, 1)});
  EXPECT_GE(manager->statistics().reclaim_wait_ns, 500'000'000U);
}

TEST_F(ResidencyNeighbors, ProgramDoesNotWaitAgainForOthersWhoDidNotLeave)
{
  offers_memory = true;
  make();
  lends->others_hold = blocks(8);
  allocate(0, 1);
  allocate(1, 1);
  EXPECT_EQ(manager->statistics().reclaims, 1U);
  lends->others_hold        = blocks(7);  // some left after all: the others may, too
  lends->others_leave_after = 2;
  allocate(2, 1);
  EXPECT_EQ(manager->statistics().reclaims, 2U);
}

TEST_F(ResidencyNeighbors, NothingIsOfferedWhereNobodyLends)
{
  make();
  allocate(0, 3);
  EXPECT_TRUE(lends->offers.empty());
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What others may hold of this device, and when they better stay away.
#include "residency_neighbors_fixture.hpp"

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::ResidencyNeighbors;

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

TEST_F(ResidencyNeighbors, OwnerSaysThatItsLinksAreBusyWhileItMovesAndTakesItBackWhenThatIsOver)
{
  offers_memory = true;
  neighbors.clear();
  make();
  allocate(0, 8);
  driver->on_call = [](driver_call const& call) {
    if (call.name == "prefetch") { std::this_thread::sleep_for(std::chrono::milliseconds{25}); }
  };
  auto const until = [this](bool said, auto const& work) {  // three looks decide, if none is late
    for (int i = 0; i < 200 && (lends->told_busy.empty() || lends->told_busy.back() != said); ++i) {
      work(static_cast<std::size_t>(i % 8));
    }
    return !lends->told_busy.empty() && lends->told_busy.back() == said;
  };
  EXPECT_TRUE(until(true, [this](std::size_t block) {
    static_cast<void>(manager->evict(at(block)));
    touch(block, 1);
  }));
  EXPECT_TRUE(until(false, [this](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds{21});
    manager->run_pending();
  }));
}

TEST_F(ResidencyNeighbors, OwnerSaysWhatTheDriverTellsOfItsLinksWhileNobodyHoldsItsMemory)
{
  for (bool const held : {false, true}) {
    offers_memory      = true;
    lends->others_hold = held ? blocks(1) : 0;
    lends->told_busy.clear();
    driver->loads = {{0, {std::nullopt, std::nullopt, 0.9}}};
    make();
    for (int look = 0; look < 4; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds{21});
      manager->run_pending();
    }
    // Once others hold some of it, it may be their traffic.
    EXPECT_EQ(lends->told_busy, held ? std::vector<bool>{} : std::vector{true});
    manager.reset();
    EXPECT_TRUE(lends->told_busy.empty() || !lends->told_busy.back());  // taken back at the end
    ledger.remove_slab(slab.address);
  }
}

TEST_F(ResidencyNeighbors, WhatCouldNotBeSaidIsSaidAtTheNextLook)
{
  offers_memory   = true;
  lends->can_tell = false;
  driver->loads   = {{0, {std::nullopt, std::nullopt, 0.9}}};
  make();
  auto const look = [this] {
    std::this_thread::sleep_for(std::chrono::milliseconds{21});
    manager->run_pending();
  };
  for (int number = 0; number < 4; ++number) {
    look();
  }
  EXPECT_EQ(lends->told_busy, (std::vector{true, true}));
  lends->can_tell = true;
  look();
  look();
  EXPECT_EQ(lends->told_busy, (std::vector{true, true, true}));
}

TEST_F(ResidencyNeighbors, OwnersLoadThatCouldNotBeReadIsCountedAndReadAtTheNextLook)
{
  offers_memory = true;
  driver->loads = {{0, {std::nullopt, std::nullopt, 0.9}}};
  make();
  driver->answers["read_neighbor_load"] = {status_code::driver_error, 999, "read_neighbor_load"};
  auto const look                       = [this] {
    std::this_thread::sleep_for(std::chrono::milliseconds{21});
    manager->run_pending();
  };
  look();
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
  driver->answers.clear();
  for (int number = 0; number < 4; ++number) {
    look();
  }
  EXPECT_EQ(lends->told_busy, std::vector{true});
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
}

TEST_F(ResidencyNeighbors, WhoDoesNotLendSaysNothing)
{
  driver->loads = {{0, {std::nullopt, std::nullopt, 0.9}}};
  make();
  for (int look = 0; look < 4; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds{21});
    manager->run_pending();
  }
  EXPECT_TRUE(lends->told_busy.empty());
}

}  // namespace
}  // namespace rmm_uvm

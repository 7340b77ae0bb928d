// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Where live blocks leave to, when it is not the host.
#include "residency_manager_fixture.hpp"

#include <chrono>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::ResidencyManager;

class ResidencyPlaces : public ResidencyManager {
 protected:
  static constexpr int neighbour = 1;

  void SetUp() override { neighbors = {{neighbour}}; }
  [[nodiscard]] driver_call to_neighbour(std::size_t first, std::size_t count) const
  {
    return {"prefetch", {at(first, count)}, evictions, neighbour};
  }
  /** @brief Eight blocks are on the device, and the first cannot leave to the neighbour. */
  void fail_at_neighbour(status_code why)
  {
    SetUp();
    make();
    allocate(0, 8);
    driver->answers["prefetch"] = {why, 2, "cuMemPrefetchAsync"};
    EXPECT_EQ(manager->evict(at(0, 1)), 0U);
    driver->answers.clear();
    static_cast<void>(moves());
  }
  void end()
  {
    manager.reset();
    ledger.remove_slab(slab.address);
  }
};

TEST_F(ResidencyPlaces, LiveBlocksLeaveToTheOtherDeviceAndComeBack)
{
  make();
  allocate(0, 8);
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{renewed(0, 8), to_neighbour(0, 2), renewed(8, 2)}));
  EXPECT_EQ(manager->statistics().evicted_bytes, blocks(2));
  touch(0, 1);
  EXPECT_EQ(moves(), (calls{to_neighbour(2, 1), fetched(0, 1)}));
}

TEST_F(ResidencyPlaces, WhatTheNeighbourHasNoRoomForLeavesToTheHost)
{
  make();
  auto& there            = driver->neighbor_level;
  auto const reserve     = there.total_bytes / 16;
  auto const leaves_when = [&](std::size_t first, std::size_t free_bytes) {
    there.free_bytes = free_bytes;
    allocate(first, 8);
    static_cast<void>(moves());
    allocate(first + 8, 1);
    auto const made = moves();
    free(first, 9);
    return made.at(0);
  };
  EXPECT_EQ(leaves_when(0, reserve + blocks(1)), to_neighbour(0, 1));
  EXPECT_EQ(leaves_when(10, reserve + blocks(1) - 1), to_host(10, 1));
}

TEST_F(ResidencyPlaces, NeighbourThatCannotBeAskedGetsNothing)
{
  make();
  allocate(0, 8);
  static_cast<void>(moves());
  driver->answers["neighbor_memory"] = {status_code::driver_error, 999, "cuMemGetInfo"};
  allocate(8, 1);
  EXPECT_EQ(moves(), (calls{to_host(0, 1), renewed(8, 1)}));
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
}

TEST_F(ResidencyPlaces, NeighbourThatFailsIsNotAskedAgain)
{
  for (auto const code : {status_code::driver_error, status_code::out_of_memory}) {
    full_period = std::chrono::hours{1};  // on a busy machine 100 ms may be over at once
    fail_at_neighbour(code);
    EXPECT_EQ(manager->evict(at(1, 1)), blocks(1));
    EXPECT_EQ(moves(), calls{to_host(1, 1)});
    end();
  }
}

TEST_F(ResidencyPlaces, NeighbourThatHadNoRoomIsAskedAgainLaterAndOneThatFailedNever)
{
  for (auto const code : {status_code::driver_error, status_code::out_of_memory}) {
    fail_at_neighbour(code);
    std::this_thread::sleep_for(std::chrono::milliseconds{101});
    EXPECT_EQ(manager->evict(at(1, 1)), blocks(1));
    auto const full = code == status_code::out_of_memory;
    EXPECT_EQ(moves(), calls{full ? to_neighbour(1, 1) : to_host(1, 1)});
    end();
  }
}

TEST_F(ResidencyPlaces, DirectMigrationKnowsNoOtherDevice)
{
  driver->facts.direct_migration = availability::yes();
  make();
  allocate(0, 9);
  EXPECT_EQ(manager->statistics().too_large, 1U);
  allocate(9, 8);
  static_cast<void>(moves());
  allocate(17, 1);
  EXPECT_EQ(moves(), (calls{to_neighbour(9, 1), renewed(17, 1)}));
}

TEST_F(ResidencyPlaces, WhatWentBesideIsNoTrafficOfTheHosts)
{
  make();
  allocate(0, 8);
  allocate(8, 2);
  static_cast<void>(moves());
  touch(4, 1);
  EXPECT_TRUE(moves().empty());
  driver->counted.device_to_host_bytes += 4096;  // nobody asked for these
  touch(4, 1);
  EXPECT_EQ(moves(), (calls{fetched(4, 1)}));  // they put in doubt what is there
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
}

TEST_F(ResidencyPlaces, DeadBlocksAreDroppedAndGoNowhere)
{
  make();
  allocate(0, 8);
  free(0, 2);
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{renewed(0, 8), dropped(0, 2), renewed(8, 2)}));
}

TEST_F(ResidencyPlaces, WhileSomeAreAdvisedAboutAllLeaveToTheHost)
{
  make();
  allocate(0, 8);
  adviser.advise(at(7), {true, std::nullopt});
  static_cast<void>(moves());
  allocate(8, 1);
  auto const made = moves();
  ASSERT_FALSE(made.empty());
  EXPECT_EQ(made.front(), to_host(0, 1));
}

TEST_F(ResidencyPlaces, EvictionThatFailsHalfwayPutsWhatIsThereInDoubt)
{
  make();
  allocate(0, 8);
  driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
  EXPECT_EQ(manager->evict(at(0, 8)), 0U);
  driver->answers.clear();
  static_cast<void>(moves());
  touch(0, 1);  // nobody knows whether it left
  EXPECT_EQ(moves(), (calls{fetched(0, 1)}));
}

TEST_F(ResidencyPlaces, EvictionThatFailsLeavesTheBlockWhereItIs)
{
  make();
  allocate(0, 8);
  driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
  EXPECT_EQ(manager->evict(at(0, 1)), 0U);
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
  EXPECT_EQ(manager->statistics().evicted_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Bursts from the host that come in part by way of a neighbour.
#include "residency_neighbors_fixture.hpp"

#include <map>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyNeighbors;

class ResidencyStaging : public ResidencyNeighbors {
 protected:
  void SetUp() override
  {
    ResidencyNeighbors::SetUp();
    driver->facts.direct_migration = availability::yes();
    driver->direct_neighbors       = true;
    rates     = {50'000'000'000, 25'000'000'000, 200'000'000'000, 200'000'000'000};
    multipath = true;
    slab      = {tests::slab_address, blocks(128)};
    budget    = blocks(96);
    neighbors = {{1}};
  }
  /** @brief 64 blocks are on the host, and from now on so much is lent. */
  void begin(std::map<int, std::size_t> const& lent)
  {
    lends->lends.clear();
    make();
    allocate(0, 64);
    EXPECT_EQ(manager->evict(at(0, 64)), blocks(64));
    lends->lends = lent;
    static_cast<void>(moves());
  }
};

TEST_F(ResidencyStaging, BurstFromTheHostComesInPartByWayOfANeighbour)
{
  begin({{1, blocks(64)}});
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

TEST_F(ResidencyStaging, WhatMayBeHereAlreadyDoesNotGoByWayOfANeighbour)
{
  begin({{1, blocks(64)}});
  touch(0, 64);
  auto const staged_bytes = manager->statistics().staged_bytes;
  driver->counted.device_to_host_bytes += blocks(65);  // one that nobody asked for: all is in doubt
  static_cast<void>(moves());
  touch(0, 64);
  EXPECT_FALSE(moves().empty());
  EXPECT_EQ(manager->statistics().staged_bytes, staged_bytes);
}

TEST_F(ResidencyStaging, BurstComesFromTheHostAloneWhereTheNeighbourHasNoRoom)
{
  begin({{1, blocks(3)}});  // less than a piece
  touch(0, 64);
  EXPECT_EQ(manager->statistics().staged_bytes, 0U);
  EXPECT_EQ(manager->statistics().fetched_bytes, blocks(64));
  EXPECT_EQ(lends->claimed[1], 0U);
}

TEST_F(ResidencyStaging, WhatCameByTheWayLeavesMemoryKeptThereThatCountsUnderTheLimit)
{
  neighbors = {{1, blocks(20)}};
  begin({{1, blocks(64)}});
  touch(0, 64);
  EXPECT_EQ(manager->statistics().staged_bytes, blocks(20));  // whatever is lent
  EXPECT_EQ(lends->claimed[1], 0U);
  static_cast<void>(moves());
  // No room for other blocks any more; for those that passed there is.
  EXPECT_EQ(manager->evict(at(0, 64)), blocks(64));
  EXPECT_EQ(manager->statistics().neighbor_bytes, blocks(20));
}

TEST_F(ResidencyStaging, WhatMemoryIsKeptForGoesThatWayAgainWithoutRoom)
{
  neighbors = {{1, blocks(20)}};
  begin({{1, blocks(64)}});
  touch(0, 64);
  lends->lends.clear();
  EXPECT_EQ(manager->evict(at(0, 64)), blocks(64));
  lends->lends = {{1, blocks(20)}};
  touch(0, 64);
  EXPECT_EQ(manager->statistics().staged_bytes, blocks(40));
}

TEST_F(ResidencyStaging, PieceThatCannotGoThereEndsThatWayAndTheBurstComesWhole)
{
  begin({{1, blocks(64)}});
  driver->fails_to = 1;
  touch(0, 64);
  auto const found = manager->statistics();
  EXPECT_EQ(found.staged_bytes, 0U);
  EXPECT_GE(found.failed_calls, 1U);
  EXPECT_LE(found.failed_calls, 4U);  // of each mover one at most
  EXPECT_EQ(found.fetched_bytes, blocks(64));
  EXPECT_EQ(lends->claimed[1], 0U);
}

TEST_F(ResidencyStaging, NothingGoesByWayOfABusyNeighbour)
{
  begin({{1, blocks(64)}});
  lends->at_work[1] = true;
  touch(0, 64);
  EXPECT_EQ(manager->statistics().staged_bytes, 0U);
  EXPECT_EQ(manager->statistics().fetched_bytes, blocks(64));
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Who leaves first where a way to a neighbour and back is cheaper than to the host.
#include "residency_neighbors_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;

class ResidencyRefuge : public tests::ResidencyManager {
 protected:
  /**
   * @brief Eight blocks fill the budget, 0 and 1 have been on a neighbour with room for `room`.
   *
   * Blocks 0 to 2 were used last; the others long before, in their order.
   */
  void fill(std::size_t room, eviction_policy policy = eviction_policy::lru)
  {
    neighbors = {{1, blocks(room)}};
    make(policy);
    for (std::size_t block = 0; block < budget_blocks; ++block) {
      allocate(block, 1);
    }
    EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
    touch(0, 2);
    EXPECT_EQ(manager->evict(at(2)), blocks(1));  // does not find room on a neighbour with two
    touch(2, 1);
    static_cast<void>(moves());
  }
  [[nodiscard]] driver_call beside(std::size_t first, std::size_t count) const
  {
    return {"prefetch", {at(first, count)}, evictions, 1};
  }
  /** @brief What leaves for one more block. */
  [[nodiscard]] driver_call first_to_leave()
  {
    allocate(budget_blocks, 1);
    auto const made = moves();
    auto const left = std::find_if(
      made.begin(), made.end(), [](driver_call const& call) { return call.device_id != 0; });
    return left == made.end() ? driver_call{} : *left;
  }
};

TEST_F(ResidencyRefuge, WhatAFullNeighbourHasMemoryForLeavesFirst)
{
  fill(2);
  EXPECT_EQ(first_to_leave(), beside(0, 1));
  EXPECT_EQ(manager->statistics().neighbor_bytes, blocks(3));
}

TEST_F(ResidencyRefuge, WhileANeighbourHasRoomTheOrderIsThePolicys)
{
  fill(8);
  EXPECT_EQ(first_to_leave(), beside(3, 1));
}

TEST_F(ResidencyRefuge, WhatWasUsedJustNowStaysAllTheSame)
{
  rates = {50'000'000'000, 25'000'000'000, 100'000'000'000, 50'000'000'000};
  fill(2);
  touch(0, 2);  // so that four times its age is less than that of the others
  EXPECT_EQ(first_to_leave(), to_host(3, 1));
}

TEST_F(ResidencyRefuge, WhereTheNeighbourIsAsFarAsTheHostTheOrderIsThePolicys)
{
  rates = {50'000'000'000, 25'000'000'000, 50'000'000'000, 25'000'000'000};
  fill(2);
  EXPECT_EQ(first_to_leave(), to_host(3, 1));
}

TEST_F(ResidencyRefuge, NeighbourThatWasGivenUpChangesNothing)
{
  fill(2);
  driver->answers["prefetch"] = {status_code::driver_error, 2, "cuMemPrefetchAsync"};
  EXPECT_EQ(manager->evict(at(0)), 0U);
  driver->answers.clear();
  static_cast<void>(moves());
  EXPECT_EQ(first_to_leave(), to_host(3, 1));
}

TEST_F(ResidencyRefuge, FirstInFirstOutKeepsItsOrder)
{
  fill(2, eviction_policy::fifo);
  EXPECT_EQ(first_to_leave(), to_host(3, 1));
}

TEST_F(ResidencyRefuge, RoomThatANeighbourHasAgainCountsAgain)
{
  auto& free_bytes   = driver->neighbor_level.free_bytes;
  auto const reserve = driver->neighbor_level.total_bytes / 16;
  fill(8);
  free_bytes = reserve;
  EXPECT_EQ(manager->evict(at(3)), blocks(1));
  EXPECT_EQ(moves(), calls{to_host(3, 1)});
  EXPECT_EQ(first_to_leave(), driver_call{});  // block 3 made room
  allocate(budget_blocks + 1, 1);
  EXPECT_EQ(moves().front(), beside(0, 1));  // not 4
  free_bytes = reserve + blocks(4);
  EXPECT_EQ(manager->evict(at(4)), blocks(1));
  static_cast<void>(moves());
  allocate(budget_blocks + 2, 2);
  EXPECT_EQ(moves().front(), beside(5, 1));
}

/** @brief A neighbour that has taken two blocks, and lends no more; both came back. */
class ResidencyRefused : public tests::ResidencyNeighbors {
 protected:
  void fill()
  {
    neighbors    = {{1}};
    lends->lends = {{1, blocks(2)}};
    make();
    for (std::size_t block = 0; block < budget_blocks; ++block) {
      allocate(block, 1);
    }
    EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
    touch(0, 2);
    lends->lends = {{1, 0}};
    EXPECT_EQ(manager->evict(at(2)), blocks(1));
    touch(2, 1);
    static_cast<void>(moves());
  }
};

TEST_F(ResidencyRefused, WhatOthersClaimedMeanwhileIsPreferredOnceAndNotAgain)
{
  fill();
  allocate(budget_blocks, 1);
  EXPECT_EQ(moves().front(), to_host(0, 1));  // was to go beside
  allocate(budget_blocks + 1, 1);
  EXPECT_EQ(moves().front(), to_host(3, 1));  // not 1, which is as hot
  lends->lends = {{1, blocks(2)}};
  EXPECT_EQ(manager->evict(at(1)), blocks(1));
  EXPECT_EQ(moves(), calls{to(1, 1, 1)});
}

TEST_F(ResidencyRefused, NeighbourThatWasNotAskedIsNotGivenUp)
{
  fill();
  lends->lends                  = {{1, blocks(2)}};
  driver->answers["own_stream"] = {status_code::out_of_memory, 2, "cuStreamCreate"};
  EXPECT_EQ(manager->evict(at(0)), 0U);
  driver->answers["own_stream"] = {status_code::driver_error, 2, "cuStreamCreate"};
  EXPECT_EQ(manager->evict(at(0)), 0U);
  driver->answers.clear();
  std::this_thread::sleep_for(std::chrono::milliseconds{110});  // it is left alone for a while
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict(at(0)), blocks(1));
  EXPECT_EQ(moves(), calls{to(1, 0, 1)});
}

/** @brief Two blocks came back, two others were given back: where does the first pair go now? */
class ResidencyKept : public ResidencyRefuge {
 protected:
  [[nodiscard]] calls leaving_with(std::size_t free_bytes)
  {
    neighbors = {{1}};
    make();
    allocate(0, budget_blocks);
    EXPECT_EQ(manager->evict(at(0, 4)), blocks(4));
    touch(0, 2);
    driver->neighbor_level.free_bytes = free_bytes;
    manager->run_pending();
    EXPECT_EQ(manager->statistics().given_back_bytes, blocks(2));
    static_cast<void>(moves());
    EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
    return moves();
  }
  std::size_t quarter{driver->neighbor_level.total_bytes / 16 / 4};
};

TEST_F(ResidencyKept, MemoryIsBelievedToBeKeptWhileSomeIsFree)
{
  EXPECT_EQ(leaving_with(quarter), calls{beside(0, 2)});
}

TEST_F(ResidencyKept, MemoryIsTheOwnersWhereHardlyAnyIsFree)
{
  EXPECT_EQ(leaving_with(quarter - 1), calls{to_host(0, 2)});
}

TEST(WeightOfKept, IsTheSquareOfTheRatioOfTheWaysThereAndBack)
{
  EXPECT_EQ(weight_of_kept({50, 25, 200, 200}), 36U);
  EXPECT_EQ(weight_of_kept({50, 25, 100, 50}), 4U);
}

TEST(WeightOfKept, IsThatOfAnH200WhereRatesAreNotKnown)
{
  EXPECT_EQ(weight_of_kept({}), 39U);
  EXPECT_EQ(weight_of_kept({50, 25, 200, 0}), 39U);
}

TEST(WeightOfKept, IsNeverLessThanOne) { EXPECT_EQ(weight_of_kept({50, 25, 10, 10}), 1U); }

}  // namespace
}  // namespace rmm_uvm

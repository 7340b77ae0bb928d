// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/free_memory_lender.hpp>
#include <rmm_uvm/residency/neighbor_places.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;

[[nodiscard]] neighbor_state state_of(std::size_t limit_blocks,
                                      std::size_t held_blocks   = 0,
                                      std::size_t moving_blocks = 0)
{
  neighbor_state state;
  state.which        = {1, blocks(limit_blocks)};
  state.held_bytes   = blocks(held_blocks);
  state.moving_bytes = blocks(moving_blocks);
  return state;
}

TEST(NeighborPlaces, TheOneWithTheLeastOnItsWayTakesTheNext)
{
  std::vector const states{state_of(9, 4, 2), state_of(9, 8, 1), state_of(9, 4, 3)};
  EXPECT_EQ(choose_neighbor(states), 1U);
}

TEST(NeighborPlaces, AmongEqualsTheOneWithTheMostRoom)
{
  std::vector const states{state_of(8, 4), state_of(9, 2), state_of(9, 3)};
  EXPECT_EQ(choose_neighbor(states), 1U);
}

TEST(NeighborPlaces, WhoIsFullBusyGivenUpOrPassedOverIsNotAsked)
{
  auto busy         = state_of(9);
  busy.busy         = true;
  auto given_up     = state_of(9);
  given_up.given_up = true;
  std::vector const states{state_of(4, 4), busy, given_up, state_of(9)};
  EXPECT_EQ(choose_neighbor(states), 3U);
  EXPECT_EQ(choose_neighbor(states, 0b1000U), std::nullopt);
}

TEST(NeighborPlaces, RoomOfLessThanABlockIsNone)
{
  auto state              = state_of(4, 3);
  state.which.limit_bytes = blocks(4) - 1;
  EXPECT_EQ(choose_neighbor(std::vector{state}), std::nullopt);
}

TEST(NeighborPlaces, HeldOverALimitThatWasLoweredLeavesNoRoom)
{
  EXPECT_EQ(state_of(2, 5).room_bytes(), 0U);
}

TEST(NeighborPlaces, WhatIsMissingOfTheReserveIsAskedForOnce)
{
  auto state         = state_of(9, 8);
  auto const missing = [&state](std::size_t free_blocks) {
    return missing_reserve(state, blocks(free_blocks), blocks(6)) / va_block_bytes;
  };
  EXPECT_EQ(missing(7), 0U);
  EXPECT_EQ(missing(4), 2U);
  EXPECT_EQ(missing(4), 0U);
  EXPECT_EQ(missing(3), 1U);  // its owner took more
  EXPECT_EQ(missing(6), 0U);  // free memory rose after all
  EXPECT_EQ(missing(5), 1U);
}

TEST(NeighborPlaces, ReserveThatIsMissingALittleMoreThanBeforeIsNotAskedABlockForEachTime)
{
  auto state = state_of(9, 8);
  EXPECT_EQ(missing_reserve(state, blocks(6) - 1, blocks(6)), blocks(1));
  EXPECT_EQ(missing_reserve(state, blocks(6) - 2, blocks(6)), 0U);
  EXPECT_EQ(missing_reserve(state, blocks(5), blocks(6)), 0U);
  EXPECT_EQ(missing_reserve(state, blocks(5) - 1, blocks(6)), blocks(1));
}

TEST(NeighborPlaces, WhatFreeMemoryRisesByBeyondWhatWeGaveBackIsOwedNoMore)
{
  auto state      = state_of(9, 8);
  auto const look = [&state](std::size_t free_blocks) {
    state.owed_bytes += missing_reserve(state, blocks(free_blocks), blocks(20));
    return state.owed_bytes / va_block_bytes;
  };
  EXPECT_EQ(look(10), 10U);
  gave_back(state, blocks(2));
  EXPECT_EQ(look(10), 8U);  // the driver keeps it
  EXPECT_EQ(look(12), 8U);  // now it shows
  EXPECT_EQ(look(15), 5U);  // others'
  gave_back(state, blocks(1));
  EXPECT_EQ(look(20), 0U);  // nothing is missing any more
}

TEST(Interleaved, EachPlaceIsAtWorkFromTheFirstToTheLastRange)
{
  auto const at = [](std::size_t number) { return memory_range{number, 1}; };
  std::vector<std::vector<memory_range>> const places{{at(1), at(2), at(3), at(4)}, {at(11)}};
  EXPECT_EQ(interleaved(places), (std::vector{at(1), at(2), at(11), at(3), at(4)}));
}

TEST(Interleaved, OnePlaceKeepsItsOrderAndNoneGivesNothing)
{
  auto const at = [](std::size_t number) { return memory_range{number, 1}; };
  std::vector<std::vector<memory_range>> const one{{}, {at(3), at(1)}};
  EXPECT_EQ(interleaved(one), (std::vector{at(3), at(1)}));
  EXPECT_TRUE(interleaved({}).empty());
}

TEST(FreeMemoryLender, LendsWholeBlocksAboveTheReserveThatNobodyWaitsFor)
{
  free_memory_lender lender;
  EXPECT_EQ(lender.claim(1, blocks(9), blocks(5) + 1, blocks(2)), blocks(3));
  EXPECT_EQ(lender.claim(1, blocks(1), blocks(5), blocks(2)), 0U);  // those are on their way
  lender.placed(1, blocks(2));
  lender.cancel(1, blocks(1));
  EXPECT_EQ(lender.held(1), blocks(2));
  EXPECT_EQ(lender.claim(1, blocks(1), blocks(3), blocks(2)), blocks(1));
  EXPECT_EQ(lender.claim(2, blocks(1), blocks(2), blocks(5)), 0U);
  EXPECT_EQ(lender.excess(1), 0U);
  EXPECT_EQ(lender.excess(1, blocks(2)), blocks(2));
  EXPECT_FALSE(lender.busy(1));
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Advice with and without a budget, on the simulated device: what moves, what stays, what is left.
#include "advised_eviction_fixture.hpp"

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

using tests::AdvisedEviction;
using tests::blocks;

constexpr advice_change reads         = {true, std::nullopt};
constexpr advice_change to_be_on_host = {std::nullopt, preferred_place::host};

TEST_P(AdvisedEviction, OfReadMostlyMemoryLeavesNoCopyOnTheDeviceAndMovesItOnce)
{
  make(GetParam());
  allocate(0, 2);
  EXPECT_EQ(residency->advise(at(0, 2), reads).advised_bytes, blocks(2));
  auto const before = to_host();
  EXPECT_EQ(residency->evict(at(0, 2), nullptr), blocks(2));
  EXPECT_EQ(to_host() - before, blocks(2));
  EXPECT_EQ(on_device(0, 2), 0U);
  EXPECT_TRUE(reads_mostly(0));
  touch(0, 2);  // a copy comes, and the host's stays
  EXPECT_EQ(on_device(0, 2), blocks(2));
  EXPECT_EQ(residency->evict(at(0, 2), nullptr), blocks(2));
  EXPECT_EQ(to_host() - before, blocks(2));  // nothing moved the second time
  EXPECT_EQ(on_device(0, 2), 0U);
}

TEST_P(AdvisedEviction, OfOtherMemoryMovesItEveryTime)  // the twin
{
  make(GetParam());
  allocate(0, 2);
  auto const before = to_host();
  for (std::uint64_t round = 1; round < 3; ++round) {
    EXPECT_EQ(residency->evict(at(0, 2), nullptr), blocks(2));
    EXPECT_EQ(to_host() - before, round * blocks(2));
    touch(0, 2);
  }
}

TEST_P(AdvisedEviction, OfWrittenReadMostlyMemoryMovesItAgain)
{
  make(GetParam());
  allocate(0, 1);
  residency->advise(at(0, 1), reads);
  residency->evict(at(0, 1), nullptr);
  touch(0, 1);
  auto const before = to_host();
  ASSERT_TRUE(device->program().touch(at(0, 1), true).ok());  // takes the host's copy away
  residency->evict(at(0, 1), nullptr);
  EXPECT_EQ(to_host() - before, blocks(1));
}

TEST_P(AdvisedEviction, WhatBelongsToTheHostComesWhenAskedForAndNotByATouch)
{
  make(GetParam());
  allocate(0, 2);
  EXPECT_EQ(residency->advise(at(0, 1), to_be_on_host).advised_bytes, blocks(1));
  EXPECT_EQ(on_device(0, 2), blocks(2));  // advice moves nothing
  residency->evict(at(0, 2), nullptr);
  touch(0, 2);
  EXPECT_EQ(on_device(0, 1), 0U);
  EXPECT_EQ(on_device(1, 1), blocks(1));
  ASSERT_TRUE(device->program().touch(at(0, 1), false).ok());  // a kernel reads it where it is
  EXPECT_EQ(on_device(0, 1), 0U);
  residency->bring(at(0, 1), nullptr);
  EXPECT_EQ(on_device(0, 1), blocks(1));
}

TEST_P(AdvisedEviction, FreedMemoryIsHandedOutWithoutAdviceAndComesWhole)
{
  make(GetParam());
  allocate(0, 4);
  residency->advise(at(0, 4), {true, preferred_place::host});
  residency->evict(at(0, 4), nullptr);
  residency->bring(at(0, 4), nullptr);
  residency->on_free(at(0, 4), nullptr);
  EXPECT_EQ(residency->advised_bytes(), 0U);
  for (std::size_t block = 0; block < 4; ++block) {
    EXPECT_FALSE(reads_mostly(block));
    EXPECT_EQ(device->view().advised(at(block, 1).address).preferred, sim::block_policy::nowhere);
  }
  static_cast<void>(residency->on_allocate(at(0, 4), nullptr, prefetch_mode::automatic));
  EXPECT_EQ(on_device(0, 4), blocks(4));  // also where the copy that stayed was the host's
  auto const faults = device->view().statistics().gpu_faults;
  ASSERT_TRUE(device->program().touch(at(0, 4), true).ok());
  EXPECT_EQ(device->view().statistics().gpu_faults, faults);
}

TEST_P(AdvisedEviction, SlabThatGoesBackLeavesNothingAdvised)
{
  make(GetParam());
  allocate(0, 4);
  residency->advise(at(0, 4), reads);
  residency->on_slab_free(base);
  EXPECT_EQ(residency->advised_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutABudget, AdvisedEviction, testing::Bool());

TEST_F(AdvisedEviction, ForABudgetOfReadMostlyMemoryMovesNothing)
{
  make(true);
  allocate(0, 4);
  residency->advise(at(0, 4), reads);
  allocate(4, 4);  // the first four leave, and are copied: nobody else has them
  EXPECT_EQ(on_device(0, 4), 0U);
  residency->on_free(at(4, 4), nullptr);
  touch(0, 4);
  EXPECT_EQ(on_device(0, 4), blocks(4));
  auto const before = to_host();
  allocate(8, 4);
  EXPECT_EQ(on_device(0, 4), 0U);
  EXPECT_EQ(to_host(), before);
  EXPECT_EQ(residency->budget_statistics().value().resident_bytes, blocks(4));
}

TEST_F(AdvisedEviction, BudgetHoldsOnTheDeviceWhileReadMostlyMemoryComesAndGoes)
{
  make(true);
  allocate(0, 4);
  allocate(4, 4);
  residency->advise(at(0, 8), reads);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t first : {0U, 2U, 4U, 6U}) {
      touch(first, 2);
      ASSERT_TRUE(device->program().touch(at(first, 2), false).ok());
      EXPECT_LE(on_device(0, 16), blocks(4));
    }
  }
}

}  // namespace
}  // namespace rmm_uvm

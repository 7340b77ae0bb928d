// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How far is looked ahead: the rule alone, and what a manager tells it.
#include "residency_manager_fixture.hpp"

#include <rmm_uvm/residency/look_ahead.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

using tests::ResidencyManager;

TEST(LookAhead, LateUsesLookFurther)
{
  look_ahead ahead{800, 100, 4000};
  ahead.used(800, 400);
  EXPECT_EQ(ahead.bytes(), 1000U);
}

TEST(LookAhead, WhatLeavesEarlyLooksLessFarEvenIfOthersAreLate)
{
  look_ahead ahead{800, 100, 4000};
  ahead.left_early(400);
  ahead.used(800, 400);
  EXPECT_EQ(ahead.bytes(), 600U);
}

TEST(LookAhead, LittleLateAndLittleEarlyStay)
{
  look_ahead ahead{800, 100, 4000};
  ahead.left_early(25);
  ahead.used(800, 100);
  EXPECT_EQ(ahead.bytes(), 800U);
  ahead.used(800, 101);
  EXPECT_EQ(ahead.bytes(), 1000U);
  ahead.left_early(32);
  ahead.used(1000, 0);
  EXPECT_EQ(ahead.bytes(), 750U);
}

TEST(LookAhead, LessUsedThanIsLookedAheadTakesNoStepYet)
{
  look_ahead ahead{800, 100, 4000};
  ahead.used(799, 799);
  EXPECT_EQ(ahead.bytes(), 800U);
  ahead.used(1, 0);
  EXPECT_EQ(ahead.bytes(), 1000U);
}

TEST(LookAhead, AStepTakenForgetsWhatItWasTakenFor)
{
  look_ahead ahead{800, 100, 4000};
  ahead.used(800, 800);
  ahead.used(1000, 0);
  EXPECT_EQ(ahead.bytes(), 1000U);
}

TEST(LookAhead, ManyStepsStayInBounds)
{
  look_ahead longer{800, 100, 4000};
  look_ahead shorter{800, 100, 4000};
  for (int step = 0; step < 64; ++step) {
    longer.used(longer.bytes(), longer.bytes());
    shorter.left_early(shorter.bytes());
    shorter.used(shorter.bytes(), 0);
  }
  EXPECT_EQ(longer.bytes(), 4000U);
  EXPECT_EQ(shorter.bytes(), 100U);
}

TEST(LookAhead, OneThatBeginsOutOfItsBoundsBeginsAtThem)
{
  EXPECT_EQ((look_ahead{10, 100, 4000}.bytes()), 100U);
  EXPECT_EQ((look_ahead{9000, 100, 4000}.bytes()), 4000U);
  EXPECT_EQ((look_ahead{800, 1000, 500}.bytes()), 1000U);  // a piece is larger than half
}

TEST(LookAhead, AGivenOneNeverChanges)
{
  look_ahead ahead{800};
  ahead.used(8000, 8000);
  EXPECT_EQ(ahead.bytes(), 800U);
  ahead.left_early(8000);
  ahead.used(8000, 0);
  EXPECT_EQ(ahead.bytes(), 800U);
}

/** @brief Programs that go round three parts, of which two fit. */
class ResidencyManagerAhead : public ResidencyManager {
 protected:
  static constexpr std::size_t parts = 3;

  /** @param has_time whether the thread does all it has to do between uses */
  void begin(bool has_time = false)
  {
    make(eviction_policy::repeat);
    for (std::size_t part = 0; part < parts; ++part) {
      allocate(part * 4, 4);
    }
    for (int round = 0; round < 8; ++round) {  // until it is foreseen
      go_round([&] {
        if (has_time) { manager->run_pending(); }
      });
    }
    ASSERT_TRUE(manager->statistics().foresees);
  }
  template <typename Between>
  void go_round(Between const& between)
  {
    for (std::size_t part = 0; part < parts; ++part) {
      touch(part * 4, 4);
      between();
    }
  }
  [[nodiscard]] std::size_t ahead_bytes() const { return manager->statistics().ahead_bytes; }
};

TEST_F(ResidencyManagerAhead, UsesThatFindExpectedBlocksAwayLookFurtherUpToHalfOfTheBudget)
{
  begin();
  auto const before = manager->settings().piece_bytes;  // an eighth is less than a piece here
  for (int round = 0; round < 32; ++round) {
    go_round([] {});  // no thread: nothing is ever fetched ahead
  }
  EXPECT_GT(ahead_bytes(), before);
  EXPECT_EQ(ahead_bytes(), tests::blocks(budget_blocks) / 2);
}

TEST_F(ResidencyManagerAhead, UsesThatFindAllOfItLookNoFurther)
{
  begin(true);
  auto const before = ahead_bytes();
  for (int round = 0; round < 32; ++round) {
    go_round([this] { manager->run_pending(); });
  }
  EXPECT_EQ(before, manager->settings().piece_bytes);
  EXPECT_GT(manager->statistics().ahead_used_bytes, 0U);
  EXPECT_EQ(ahead_bytes(), before);
}

TEST_F(ResidencyManagerAhead, BlocksThatLeaveBeforeTheirUseLookLessFarDownToAPiece)
{
  begin();
  for (int round = 0; round < 8; ++round) {
    go_round([] {});
  }
  auto const before = ahead_bytes();
  for (int round = 0; round < 32; ++round) {
    go_round([this] {
      manager->run_pending();
      for (std::size_t part = 0; part < parts; ++part) {
        static_cast<void>(manager->evict(at(part * 4, 4)));
      }
    });
  }
  EXPECT_LT(ahead_bytes(), before);
  EXPECT_EQ(ahead_bytes(), manager->settings().piece_bytes);
}

TEST_F(ResidencyManagerAhead, AGivenNumberIsKeptWhateverComesLate)
{
  ahead_adapts = false;
  begin();
  for (int round = 0; round < 32; ++round) {
    go_round([] {});
  }
  EXPECT_EQ(ahead_bytes(), tests::blocks(budget_blocks) / 8);
}

TEST_F(ResidencyManagerAhead, AProgramThatFitsChangesNothing)
{
  make(eviction_policy::repeat);
  auto const before = ahead_bytes();
  allocate(0, 4);
  allocate(4, 4);
  for (int round = 0; round < 64; ++round) {
    touch(0, 4);
    touch(4, 4);
  }
  EXPECT_EQ(ahead_bytes(), before);
}

TEST_F(ResidencyManagerAhead, UsesThatNobodyExpectedAreNotLate)
{
  begin();
  auto const before = ahead_bytes();
  allocate(12, 4);
  allocate(16, 4);  // the parts leave; these two are new to it
  static_cast<void>(manager->evict(at(12, 4)));
  touch(12, 4);
  EXPECT_EQ(ahead_bytes(), before);
}

TEST_F(ResidencyManagerAhead, PendingPiecesAreOneAtATimeAndEnd)
{
  begin();
  for (std::size_t part = 0; part < parts; ++part) {
    static_cast<void>(manager->evict(at(part * 4, 4)));
  }
  auto const fetched = [this] { return manager->statistics().fetched_ahead_bytes; };
  auto const before  = fetched();
  ASSERT_TRUE(manager->run_pending_piece());
  EXPECT_EQ(fetched() - before, manager->settings().piece_bytes);
  int pieces = 0;
  while (manager->run_pending_piece() && pieces < 64) {
    ++pieces;
  }
  EXPECT_LT(pieces, 64);
}

}  // namespace
}  // namespace rmm_uvm

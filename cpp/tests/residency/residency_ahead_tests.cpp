// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is done ahead of the program: fetches, and evictions to the low watermark.
#include "residency_manager_fixture.hpp"

#include <algorithm>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::recording_driver;
using tests::ResidencyManager;

/** @brief A program that uses three parts of four blocks in turn, of which two fit. */
class ThreeParts : public ResidencyManager {
 protected:
  void learn_three_parts()
  {
    make(eviction_policy::repeat);
    for (std::size_t part = 0; part < 3; ++part) {
      allocate(part * 4, 4);
    }
    for (int round = 0; round < 12; ++round) {
      for (std::size_t part = 0; part < 3; ++part) {
        touch(part * 4, 4);
      }
    }
  }
};

TEST_F(ThreeParts, WhatComesNextIsFetchedAheadAndWhatIsNeededLastLeaves)
{
  learn_three_parts();
  EXPECT_TRUE(manager->statistics().foresees);
  static_cast<void>(manager->evict(at(8, 4)));
  static_cast<void>(manager->evict(at(0, 4)));
  static_cast<void>(moves());
  manager->run_pending();
  auto const found = moves();
  ASSERT_FALSE(found.empty());
  // The next use is of part 0: it comes in pieces, in a stream of its own.
  auto const arrivals = recording_driver::own(own_stream_use::arrivals);
  EXPECT_EQ(found[0], (driver_call{"prefetch", {at(0, 2)}, arrivals, 0}));
  EXPECT_GT(manager->statistics().fetched_ahead_bytes, 0U);
  touch(0, 4);
  EXPECT_GT(manager->statistics().ahead_used_bytes, 0U);
}

/** @brief What comes between two pieces of what is expected next. */
class BetweenPieces : public ThreeParts, public testing::WithParamInterface<bool> {};

TEST_P(BetweenPieces, WhatIsFreedIsNotFetched)
{
  bool const freed = GetParam();
  learn_three_parts();
  static_cast<void>(manager->evict(at(8, 4)));
  static_cast<void>(manager->evict(at(0, 4)));
  auto const ahead_bytes = [this] { return manager->statistics().fetched_ahead_bytes; };
  while (ahead_bytes() == 0 && manager->run_pending_piece()) {}
  ASSERT_EQ(ahead_bytes(), blocks(2));  // of part 0, which is expected next, with the rest of it
  if (freed) { free(0, 4); }
  static_cast<void>(moves());
  manager->run_pending();
  auto const found = moves();
  bool const came  = std::any_of(found.begin(), found.end(), [this](driver_call const& call) {
    return call.name == "prefetch" && call.device_id == 0 && call.ranges.front() == at(2, 2);
  });
  EXPECT_EQ(came, !freed);
}

INSTANTIATE_TEST_SUITE_P(AndOtherwiseItIs, BetweenPieces, testing::Bool());

/** @brief Work on three blocks, twice around a use of a state; then a table is used. */
class WorkBeforeATable : public ResidencyManager, public testing::WithParamInterface<bool> {
 protected:
  /** @brief Bytes that are fetched before the second work of a round, the table being away. */
  [[nodiscard]] std::uint64_t fetched_before_work(std::size_t state_blocks)
  {
    discard_dead = GetParam();
    make(eviction_policy::repeat);
    allocate(0, 3);
    allocate(first_of_state, state_blocks);
    for (int round = 0; round < 12; ++round) {
      work(10);
      touch(first_of_state, state_blocks);
      work(20);
      touch(0, 3);
    }
    EXPECT_TRUE(manager->statistics().foresees);
    work(10);
    touch(first_of_state, state_blocks);
    auto const before = manager->statistics().fetched_ahead_bytes;
    static_cast<void>(manager->evict(at(0, 3)));
    manager->run_pending();
    return manager->statistics().fetched_ahead_bytes - before;
  }

 private:
  static constexpr std::size_t first_of_state = 26;

  void work(std::size_t first)
  {
    allocate(first, 3);
    touch(first, 3);
    free(first, 3);
  }
};

TEST_P(WorkBeforeATable, FetchesItWhereTheDeadLeaveRoomForBoth)
{
  EXPECT_EQ(fetched_before_work(1), blocks(3));
}

TEST_P(WorkBeforeATable, FetchesNothingWhoseRoomIsNeededFirst)
{
  EXPECT_EQ(fetched_before_work(4), 0U);
}

INSTANTIATE_TEST_SUITE_P(DropsTheDead, WorkBeforeATable, testing::Bool());

TEST_F(ResidencyManager, WithoutRepetitionNothingIsFetchedAhead)
{
  make(eviction_policy::repeat);
  for (std::size_t first = 0; first < 32; first += 4) {
    allocate(first, 4);
  }
  static_cast<void>(moves());
  manager->run_pending();
  for (auto const& call : moves()) {
    EXPECT_EQ(call.device_id, location::host_id);
  }
  EXPECT_FALSE(manager->statistics().foresees);
}

TEST_F(ResidencyManager, WhatSeveralUsesOfOneCallWaitedForIsNotCountedAsFetchedAhead)
{
  make();
  allocate(0, 8);
  allocate(8, 4);  // the first ones leave
  use_event const uses[]{{use_kind::touch, at(0, 1), at(0).address},
                         {use_kind::touch, at(1, 1), at(1).address}};
  manager->on_touch(uses, stream);
  manager->on_touch(uses, stream);
  EXPECT_GT(manager->statistics().fetched_bytes, 0U);
  EXPECT_EQ(manager->statistics().fetched_ahead_bytes, 0U);
  EXPECT_EQ(manager->statistics().ahead_used_bytes, 0U);
}

TEST_F(ResidencyManager, WhatOneCallTouchesDoesNotLeaveBeforeALaterUseIsAnnouncedAndMarked)
{
  make();
  allocate(0, 8);
  allocate(8, 1);  // short of room: the thread would evict down to the low watermark
  static_cast<void>(moves());
  use_event const uses[]{{use_kind::touch, at(1, 4), at(1).address},
                         {use_kind::touch, at(5, 4), at(5).address}};
  manager->on_touch(uses, stream);
  manager->run_pending();
  EXPECT_TRUE(moves().empty());
  allocate(9, 1);  // the call's result: its kernel is not launched yet
  manager->run_pending();
  EXPECT_EQ(moves(), (calls{to_host(1, 1), renewed(9, 1)}));
  touch(9, 1);  // its mark lies behind the work of that call
  manager->run_pending();
  EXPECT_EQ(moves(), calls{to_host(2, 1)});
}

TEST_F(ResidencyManager, WhereTheDeadMakeRoomNoLiveBlockLeavesBeforeItMust)
{
  make();
  allocate(0, 8);
  free(0, 1);
  allocate(8, 1);
  manager->run_pending();
  EXPECT_EQ(moves(), (calls{renewed(0, 8), dropped(0, 1), renewed(8, 1)}));
  allocate(9, 1);  // no dead block is left: a live one leaves, and the next one before it must
  manager->run_pending();
  EXPECT_EQ(moves(), (calls{to_host(1, 1), renewed(9, 1), to_host(2, 1)}));
}

TEST_F(ResidencyManager, WhatIsDoneWhileEverythingFitsIsLearntOnceItDoesNot)
{
  slab.bytes = tests::blocks(budget_blocks);
  make(eviction_policy::repeat);
  for (std::size_t turn = 0; turn < 8; ++turn) {
    allocate(0, 2);
    allocate(2, 4);
    free(0, 2);
    free(2, 4);
  }
  EXPECT_EQ(manager->statistics().prediction.seen, 0U);
  ledger.add_slab({slab.end() + tests::blocks(64), tests::blocks(4)});  // more than the budget
  allocate(0, 2);
  EXPECT_EQ(manager->statistics().prediction.seen, 17U);
  EXPECT_GE(manager->statistics().prediction.predicted, 8U);
}

TEST_F(ResidencyManager, PendingWorkEvictsToTheLowWatermarkOnlyAfterAShortage)
{
  make();
  allocate(0, 8);
  static_cast<void>(moves());
  manager->run_pending();
  EXPECT_TRUE(moves().empty());  // it fits: nothing leaves for a watermark
  allocate(8, 1);
  static_cast<void>(moves());
  manager->run_pending();
  EXPECT_LE(manager->statistics().resident_bytes, manager->settings().low_bytes);
}

}  // namespace
/** @brief A program goes round twice as many parts as fit; each is one allocation. */
class LongLookAhead : public ResidencyManager {
 protected:
  /** @return the most that is fetched ahead at a time */
  [[nodiscard]] std::size_t most_together(std::size_t fits_blocks)
  {
    budget       = blocks(fits_blocks);
    slab.bytes   = blocks(2 * fits_blocks + 64);
    ahead_adapts = false;  // an eighth of the budget
    make(eviction_policy::repeat);
    auto const part     = fits_blocks / 4;
    std::uint64_t most  = 0;
    std::uint64_t ahead = 0;
    auto const round    = [&](auto const& use) {
      for (std::size_t first = 0; first < 2 * fits_blocks; first += part) {
        use(first);
        for (bool again = true; again;) {
          again          = manager->run_pending_piece();
          auto const now = manager->statistics().fetched_ahead_bytes;
          most           = std::max(most, now - ahead);
          ahead          = now;
        }
      }
    };
    round([&](std::size_t first) { allocate(first, part); });
    for (int number = 0; number < 6; ++number) {
      round([&](std::size_t first) { touch(first, part); });
    }
    return most;
  }
};

TEST_F(LongLookAhead, HasFourPiecesComeTogether)
{
  auto const together = most_together(1024);
  EXPECT_EQ(together, 4 * manager->settings().piece_bytes);
}

TEST_F(LongLookAhead, ShortOneHasOnePieceCome)
{
  auto const together = most_together(32);
  EXPECT_EQ(together, manager->settings().piece_bytes);
}

}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What leaves while, and after, uses were passed over since all that lives was on the device.
#include "confirmed_program.hpp"

#include <algorithm>
#include <array>

namespace rmm_uvm {
namespace {

using tests::blocks;

class ResidencyPresenceEnd : public tests::ConfirmedProgram {};

TEST_F(ResidencyPresenceEnd, WhatUsesThatWerePassedOverMayStillUseIsWaitedFor)
{
  for (bool const confirmed : {false, true}) {
    make_with_six();
    EXPECT_EQ(confirmed && manager->confirm_present(stream), confirmed);
    come_and_go(20);
    driver->marks_passed = false;  // kernels from here on are under way
    touch(8, 6);
    static_cast<void>(driver->take_calls());
    reuse(at(20, 4));
    EXPECT_EQ(evicted_bytes(), blocks(2));
    EXPECT_EQ(waits(), 1);
    driver->marks_passed = true;
    touch(22, 2);  // a mark behind all that
    static_cast<void>(driver->take_calls());
    reuse(at(26, 1));
    EXPECT_EQ(evicted_bytes(), blocks(3));
    EXPECT_EQ(waits(), 0);
    manager.reset();
    ledger.remove_slab(slab.address);
  }
}

TEST_F(ResidencyPresenceEnd, NothingLeavesByItselfBeforeAMarkBehindUsesThatWerePassedOver)
{
  make_with_six();
  EXPECT_TRUE(manager->confirm_present(stream));
  come_and_go(2);
  reuse(at(20, 3));  // one more than fits: the thread makes some room, too
  auto const before = evicted_bytes();
  EXPECT_EQ(before, blocks(1));
  driver->marks_passed = false;
  manager->run_pending();
  EXPECT_EQ(evicted_bytes(), before);
  driver->marks_passed = true;
  touch(20, 3);
  reuse(at(26, 1));
  manager->run_pending();
  EXPECT_GT(evicted_bytes(), before + blocks(1));
}

TEST_F(ResidencyPresenceEnd, WhatWasUsedAllTheWhileStaysLongerThanWhatCameAndWasNotUsedSince)
{
  make_with_six();
  EXPECT_TRUE(manager->confirm_present(stream));
  reuse(at(20));
  for (int time = 0; time < 20; ++time) {
    touch(8, 6);  // passed over
    come_and_go(1);
  }
  static_cast<void>(moves());
  reuse(at(24, 2));
  auto const made = moves();
  EXPECT_NE(std::find(made.begin(), made.end(), to_host(20, 1)), made.end());
  EXPECT_EQ(evicted_bytes(), blocks(1));
}

TEST_F(ResidencyPresenceEnd, AProgramThatFitsKeepsAllItHasThoughItsUsesAreNotForetold)
{
  // Live at most 3 + 4 of 8 blocks, at other addresses each time, so that dead blocks are dropped.
  make(eviction_policy::repeat);
  reuse(at(0, 3));
  std::size_t next   = 3;
  std::size_t before = 0;
  int confirmed      = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::size_t> kept;
    for (int layer = 0; layer < 2; ++layer) {
      if (!manager->confirmed_present()) { touch(0, 3); }
      kept.push_back(next);
      reuse(at(next, 2));
      touch(next, 2);
      next = next >= 29 ? 3 : next + 2;
      if (layer == 0 && round > 12 && manager->confirm_present(stream)) { ++confirmed; }
      manager->run_pending();
    }
    for (; !kept.empty(); kept.pop_back()) {
      if (!manager->confirmed_present()) { touch(kept.back(), 2); }
      manager->run_pending();
      free(kept.back(), 2);
    }
    if (round == 12) {
      EXPECT_TRUE(manager->statistics().foresees);
      before = evicted_bytes();
    }
  }
  EXPECT_GT(manager->statistics().dropped_bytes, blocks(200));
  EXPECT_GT(confirmed, 180);
  EXPECT_EQ(evicted_bytes(), before);
}

TEST_F(ResidencyPresenceEnd, NothingLeavesForAWatermarkWhileAllThatLivesIsThere)
{
  for (bool const confirmed : {false, true}) {
    make();
    allocate(0, 8);
    allocate(8, 1);  // the first block leaves, and the next ones earlier than they must
    free(0, 1);
    touch(1, 8);
    touch(8, 1);  // behind a mark
    EXPECT_EQ(confirmed && manager->confirm_present(stream), confirmed);
    auto const before = evicted_bytes();
    manager->run_pending();
    EXPECT_EQ(evicted_bytes() == before, confirmed);
    manager.reset();
    ledger.remove_slab(slab.address);
  }
}

TEST_F(ResidencyPresenceEnd, WhatIsOnlyInDoubtIsPrefetchedOnceAndIsThere)
{
  make_with_six();
  manager->pin(at(8));                                        // and nobody announces it
  driver->counted.device_to_host_bytes += std::size_t{4096};  // some page of somebody's
  touch(9, 5);
  static_cast<void>(moves());
  EXPECT_TRUE(manager->confirm_present(stream));
  EXPECT_EQ(moves(), (calls{fetched(8, 1)}));
  EXPECT_TRUE(manager->confirm_present(stream));
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyPresenceEnd, WhatIsInDoubtIsNotPrefetchedBesideWhatIsAwayNorInACapture)
{
  make_with_six();
  driver->counted.device_to_host_bytes += std::size_t{4096};
  driver->capture = capture_state::capturing;
  static_cast<void>(moves());
  EXPECT_FALSE(manager->confirm_present(stream));
  driver->capture = capture_state::none;
  touch(8, 3);
  EXPECT_EQ(manager->evict(at(10)), blocks(1));
  static_cast<void>(moves());
  EXPECT_FALSE(manager->confirm_present(stream));
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyPresenceEnd, WhatBelongsToTheHostMayBeThere)
{
  driver->facts.concurrent_managed_access = {true, {}};
  make_with_six();
  EXPECT_EQ(adviser.advise(at(12, 2), {std::nullopt, preferred_place::host}).advised_bytes,
            blocks(2));
  EXPECT_EQ(manager->evict(at(12, 2)), blocks(2));
  EXPECT_TRUE(manager->confirm_present(stream));
  EXPECT_TRUE(manager->confirmed_present());
}

TEST_F(ResidencyPresenceEnd, WhatIsInDoubtBeforeWhatIsAwayIsNotPrefetchedEither)
{
  make_with_six();
  EXPECT_EQ(manager->evict(at(12)), blocks(1));
  driver->counted.device_to_host_bytes += blocks(2);
  static_cast<void>(moves());
  EXPECT_FALSE(manager->confirm_present(stream));
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyPresenceEnd, BytesThatLeaveByThemselvesHaveTheThreadMakeRoomAgain)
{
  make();
  allocate(0, 8);
  allocate(8, 1);
  free(0, 1);
  touch(1, 8);
  touch(8, 1);
  EXPECT_TRUE(manager->confirm_present(stream));
  driver->counted.device_to_host_bytes += std::size_t{4096};
  touch(1, 8);
  touch(8, 1);
  touch(8, 1);
  auto const before = evicted_bytes();
  manager->run_pending();
  EXPECT_GT(evicted_bytes(), before);
}

TEST_F(ResidencyPresenceEnd, WhatLivedAllTheWhileKeepsItsOrder)
{
  make_with_six();
  touch(9, 5);
  touch(8, 1);
  come_and_go(2);
  EXPECT_TRUE(manager->confirm_present(stream));
  come_and_go(20);
  static_cast<void>(moves());
  reuse(at(24, 3));
  auto const made = moves();
  EXPECT_NE(std::find(made.begin(), made.end(), to_host(9, 1)), made.end());
}

TEST_F(ResidencyPresenceEnd, ItDoesNotMatterHowOftenItWasConfirmed)
{
  make_with_six();
  EXPECT_TRUE(manager->confirm_present(stream));
  reuse(at(20));
  for (int time = 0; time < 20; ++time) {
    EXPECT_TRUE(manager->confirm_present(stream));
    touch(8, 6);
    come_and_go(1);
  }
  static_cast<void>(moves());
  reuse(at(24, 2));
  auto const made = moves();
  EXPECT_NE(std::find(made.begin(), made.end(), to_host(20, 1)), made.end());
}

TEST_F(ResidencyPresenceEnd, WhatWasNotedOnceMeanwhileIsAsLateAsWhatWasNot)
{
  make();
  reuse(at(0, 8));
  free(0, 8);
  reuse(at(8, 5));
  come_and_go(2);
  EXPECT_TRUE(manager->confirm_present(stream));
  reuse(at(20, 2), blocks(1));  // the second one does not come
  std::array<use_event, 2> const both{use_event{use_kind::touch, at(10), at(10).address},
                                      use_event{use_kind::touch, at(21), at(21).address}};
  manager->on_touch(both, stream);  // so that block 10 is noted, too
  free(20, 2);
  for (int time = 0; time < 30; ++time) {
    touch(8, 5);
    come_and_go(1);
  }
  reuse(at(24, 4));
  ledger_view view{ledger};
  view.each(at(10), [](block_record const& block, memory_range) {
    EXPECT_EQ(block.place, block_place::device);
  });
}

TEST_F(ResidencyPresenceEnd, WhatCameAheadAndLivedAllTheWhileCountsAsUsed)
{
  make_with_six();
  {
    ledger_view view{ledger};
    view.each(at(8, 2), [](block_record& block, memory_range) { block.fetched_ahead = true; });
  }
  EXPECT_TRUE(manager->confirm_present(stream));
  touch(8, 6);
  EXPECT_EQ(manager->evict(at(8)), blocks(1));
  EXPECT_EQ(manager->statistics().ahead_used_bytes, blocks(2));
}

TEST_F(ResidencyPresenceEnd, OneSmallUseIsMarkedBehindThoseThatWerePassedOver)
{
  make_with_six();
  EXPECT_TRUE(manager->confirm_present(stream));
  come_and_go(2);
  EXPECT_EQ(manager->evict(at(8)), blocks(1));
  driver->marks_passed = false;
  static_cast<void>(driver->take_calls());
  for (std::size_t times : {1U, 0U, 0U}) {
    tests::touch(*manager, {at(9).address, 4096}, stream);
    EXPECT_EQ(driver->take_calls("mark").size(), times);
  }
}

}  // namespace
}  // namespace rmm_uvm

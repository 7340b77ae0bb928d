// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What leaves when a request needs room, and what the manager asks to come, call by call.
#include "residency_manager_fixture.hpp"

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyManager;
using tests::slab_address;

TEST_F(ResidencyManager, AllocationThatFitsIsRenewedAndNothingLeaves)
{
  make();
  allocate(0, 8);
  EXPECT_EQ(moves(), (calls{renewed(0, 8)}));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(ResidencyManager, WhatIsToComeIsNotResidentWhileOthersLeaveForIt)
{
  make();
  allocate(0, 8);
  std::size_t seen_bytes = 0;
  driver->on_call        = [&](auto const& call) {
    if (call.name == "prefetch") { seen_bytes = manager->statistics().resident_bytes; }
  };
  allocate(8, 2);
  EXPECT_EQ(seen_bytes, blocks(8));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
  EXPECT_EQ(manager->statistics().peak_resident_bytes, blocks(8));
}

TEST_F(ResidencyManager, WhatIsThereAndAskedForAgainAfterAnEpochIsNotCountedTwice)
{
  make();
  allocate(0, 4);
  free(2, 2);
  static_cast<void>(moves());
  driver->counted.device_to_host_bytes = 4096;  // somebody moved something
  touch(0, 2);
  allocate(2, 2);
  EXPECT_EQ(moves(), (calls{fetched(0, 2), renewed(2, 2)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.fetched_bytes, 0U);
  EXPECT_EQ(counts.renewed_bytes, blocks(4));
  EXPECT_EQ(counts.resident_bytes, blocks(4));
}

TEST_F(ResidencyManager, AllocationOfWhatIsThereCallsNothing)
{
  make();
  allocate(0, 4);
  free(0, 4);
  static_cast<void>(moves());
  allocate(0, 4);
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyManager, DeadBlocksAreDroppedBeforeLiveOnesAreCopied)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  free(0, 4);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{dropped(0, 2), renewed(8, 2)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.dropped_bytes, blocks(2));
  EXPECT_EQ(counts.evicted_bytes, 0U);
  EXPECT_EQ(counts.resident_bytes, blocks(8));
}

TEST_F(ResidencyManager, WhatWasFreedFirstIsDroppedFirstHoweverLateItWasUsed)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  touch(4, 4);
  free(4, 4);
  free(0, 4);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{dropped(4, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, LiveBlocksLeaveOnceTheDeadAreNotEnoughAnyMore)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  free(0, 3);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{dropped(0, 2), renewed(8, 2)}));
  allocate(10, 2);
  EXPECT_EQ(moves(), (calls{dropped(2, 1), to_host(3, 1), renewed(10, 2)}));
  allocate(12, 1);
  EXPECT_EQ(moves(), (calls{to_host(4, 1), renewed(12, 1)}));
  free(5, 1);
  allocate(13, 1);
  EXPECT_EQ(moves(), (calls{dropped(5, 1), renewed(13, 1)}));
  allocate(14, 2);
  EXPECT_EQ(moves(), (calls{to_host(6, 2), renewed(14, 2)}));
}

TEST_F(ResidencyManager, LiveBlocksLeaveInTheOrderOfThePolicyInPieces)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  touch(0, 4);
  static_cast<void>(moves());
  allocate(8, 3);
  EXPECT_EQ(moves(), (calls{to_host(4, 2), to_host(6, 1), renewed(8, 3)}));
}

TEST_F(ResidencyManager, FifoForgetsUses)
{
  make(eviction_policy::fifo);
  allocate(0, 4);
  allocate(4, 4);
  touch(0, 4);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, DeadBlocksAreCopiedWhereDiscardIsOff)
{
  discard_dead = false;
  make(eviction_policy::fifo);
  allocate(0, 8);
  free(0, 8);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, WithoutFetchingPagesComeByFault)
{
  fetch = false;
  make(eviction_policy::fifo);
  allocate(0, 8);
  touch(0, 8);
  EXPECT_TRUE(moves().empty());
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2)}));
}

TEST_F(ResidencyManager, WithoutFetchingNothingIsDropped)
{
  fetch = false;
  make();
  allocate(0, 8);
  free(0, 8);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{to_host(0, 2)}));
}

TEST_F(ResidencyManager, WhatWasFreedLastIsDroppedLast)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  touch(0, 4);
  free(0, 8);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves(), (calls{dropped(4, 2), renewed(8, 2)}));
}

TEST_F(ResidencyManager, BlockThatIsSharedLeavesByItsSoonestUse)
{
  make(eviction_policy::repeat);
  auto const half = va_block_bytes / 2;
  memory_range const often{slab_address, half};
  memory_range const seldom{slab_address + half, half};
  manager->on_allocate(often, stream);
  manager->on_allocate(seldom, stream);
  for (int round = 0; round < 12; ++round) {
    for (int use = 0; use < 4; ++use) {
      tests::touch(*manager, often, stream);
    }
    tests::touch(*manager, seldom, stream);
  }
  allocate(1, 7);
  static_cast<void>(moves());
  allocate(8, 2);
  for (auto const& call : moves()) {
    EXPECT_NE(call, to_host(0, 1));
  }
}

TEST_F(ResidencyManager, TouchBringsBackWhatIsAwayAndOnlyThat)
{
  make();
  allocate(0, 4);
  allocate(4, 4);
  allocate(8, 4);  // 0 to 3 leave
  static_cast<void>(moves());
  touch(2, 4);
  EXPECT_EQ(moves(), (calls{to_host(6, 2), fetched(2, 2)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.wanted_bytes, blocks(4));
  EXPECT_EQ(counts.present_bytes, blocks(2));
}

TEST_F(ResidencyManager, BlockBesideALiveNeighbourIsFetchedWithIt)
{
  make();
  auto const half = va_block_bytes / 2;
  manager->on_allocate({slab_address, half}, stream);
  static_cast<void>(manager->evict(at(0)));
  static_cast<void>(moves());
  manager->on_allocate({slab_address + half, half}, stream);
  EXPECT_EQ(moves(), (calls{fetched(0, 1)}));
}

TEST_F(ResidencyManager, BlockIsDeadOnlyWhenItsLastAllocationIsFreed)
{
  make();
  auto const half = va_block_bytes / 2;
  manager->on_allocate({slab_address, half}, stream);
  manager->on_allocate({slab_address + half, half}, stream);
  manager->on_free({slab_address, half}, stream);
  allocate(1, 7);
  static_cast<void>(moves());
  allocate(8, 1);
  EXPECT_EQ(moves(), (calls{to_host(0, 1), renewed(8, 1)}));
}

}  // namespace
}  // namespace rmm_uvm

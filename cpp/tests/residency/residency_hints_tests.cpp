// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Hints, and what is not asked for: what is too large, and what a capture would not bear.
#include "residency_manager_fixture.hpp"

#include <array>
#include <chrono>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyManager;
using tests::slab_address;

TEST_F(ResidencyManager, EvictMovesWholeBlocksOnly)
{
  make();
  allocate(0, 4);
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict({slab_address + 256, blocks(3)}), blocks(2));
  EXPECT_EQ(moves(), (calls{to_host(1, 2)}));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(2));
}

TEST_F(ResidencyManager, BlockThatIsOnItsWayOutIsPinnedWhereItComesToLie)
{
  make();
  allocate(0, 8);
  std::thread other;
  driver->on_call = [&](tests::driver_call const& call) {
    if (call != to_host(0, 1)) { return; }
    other = std::thread{[&] { manager->pin(at(0)); }};
    std::this_thread::sleep_for(std::chrono::milliseconds{50});  // it would be over by then
    EXPECT_EQ(manager->statistics().pinned_bytes, 0U);
  };
  EXPECT_EQ(manager->evict(at(0)), blocks(1));
  ASSERT_TRUE(other.joinable());
  other.join();
  EXPECT_EQ(manager->statistics().pinned_bytes, blocks(1));
}

TEST_F(ResidencyManager, PinnedBlocksStayAndTheBudgetIsExceededRatherThanAnErrorRaised)
{
  make();
  allocate(0, 8);
  manager->pin(at(0, 8));
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict(at(0, 8)), 0U);
  allocate(8, 1);
  EXPECT_EQ(moves(), (calls{renewed(8, 1)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.over_budget, 1U);
  EXPECT_EQ(counts.pinned_bytes, blocks(8));
  manager->unpin(at(0, 8));
  allocate(9, 1);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(9, 1)}));
}

TEST_F(ResidencyManager, AllocationLargerThanTheBudgetComesAsFarAsItFitsAndTheRestIsOnTheHost)
{
  make();
  allocate(0, 9);
  EXPECT_EQ(moves(), (calls{to_host(8, 1), renewed(0, 8)}));
  EXPECT_EQ(manager->statistics().too_large, 1U);
}

TEST_F(ResidencyManager, RequestLargerThanTheBudgetIsLeftToFaultsThoughMostOfItIsThere)
{
  make();
  allocate(0, 6);
  static_cast<void>(moves());
  touch(0, 9);
  EXPECT_TRUE(moves().empty());
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.too_large, 1U);
  EXPECT_EQ(counts.too_large_bytes, blocks(9));
  EXPECT_EQ(counts.over_budget, 0U);
  EXPECT_EQ(counts.peak_resident_bytes, blocks(6));
}

TEST_F(ResidencyManager, RequestIsTooLargeByItsWholeBlocks)
{
  make();
  manager->on_allocate({slab_address + blocks(1) / 2, blocks(8)}, stream);
  EXPECT_EQ(moves().front(), to_host(8, 1));
  EXPECT_EQ(manager->statistics().too_large_bytes, blocks(9));
}

TEST_F(ResidencyManager, RangesThatAreTooLargeOnlyTogetherCountAndTheFirstOnesComeAsFarAsTheyFit)
{
  make();
  std::array<use_event, 3> const uses{use_event{use_kind::touch, at(0, 5), at(0).address},
                                      use_event{use_kind::touch, at(8, 6), at(8).address},
                                      use_event{use_kind::touch, at(16, 3), at(16).address}};
  manager->on_touch(uses, stream);
  EXPECT_EQ(moves(), (calls{fetched(0, 5), fetched(16, 3)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.too_large, 1U);
  EXPECT_EQ(counts.too_large_bytes, blocks(14));
  EXPECT_EQ(counts.over_budget, 0U);
}

TEST_F(ResidencyManager, BlockThatRangesOfOneRequestShareIsNeededOnce)
{
  make();
  allocate(0, 3);
  static_cast<void>(moves());
  memory_range const first{slab_address, blocks(5) + blocks(1) / 2};
  memory_range const second{first.end(), blocks(8) - first.bytes};
  std::array<use_event, 2> const uses{use_event{use_kind::touch, first, first.address},
                                      use_event{use_kind::touch, second, second.address}};
  manager->on_touch(uses, stream);
  EXPECT_EQ(moves(), (calls{fetched(3, 5)}));
  EXPECT_EQ(manager->statistics().too_large, 0U);
}

TEST_F(ResidencyManager, NothingIsIssuedWhileAStreamCaptures)
{
  make();
  driver->capture = capture_state::capturing;
  allocate(0, 4);
  touch(0, 4);
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyManager, PrefetchIntoACaptureDoesNotTouchItsStream)
{
  make();
  allocate(0, 8);
  allocate(8, 8);
  static_cast<void>(driver->take_calls());
  driver->orders.clear();
  driver->capture = capture_state::capturing;
  manager->prefetch(at(0, 4), stream);
  for (auto const& call : driver->take_calls()) {
    EXPECT_EQ(call.name, "capturing");  // waiting for it, or ordering it, would end the capture
  }
  EXPECT_TRUE(driver->orders.empty());
  driver->capture = capture_state::none;
  manager->prefetch(at(0, 4), stream);
  EXPECT_EQ(moves(), (calls{to_host(8, 2), to_host(10, 2), fetched(0, 4)}));
}

}  // namespace
}  // namespace rmm_uvm

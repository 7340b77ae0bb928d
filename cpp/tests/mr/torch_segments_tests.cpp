// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/failing_new.hpp"
#include "torch_segments_fixture.hpp"

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm::mr {
namespace {

using tests::address_of;
using tests::blocks;
using tests::simulated_chain;
using tests::TorchSegments;

TEST_F(TorchSegments, SegmentIsOnTheDeviceAndCounted)
{
  auto* const segment = take(4);
  ASSERT_NE(segment, nullptr);
  EXPECT_EQ(chain.device->view().resident_bytes({address_of(segment), blocks(4)}), blocks(4));
  EXPECT_TRUE(segments->holds(address_of(segment) + blocks(4) - 1));
  EXPECT_FALSE(segments->holds(address_of(segment) + blocks(4)));
  EXPECT_EQ(segments->statistics().segment_bytes, blocks(4));
  EXPECT_EQ(segments->statistics().segments, 1U);
}

TEST_F(TorchSegments, SegmentThatIsGivenBackLeavesNothingButThePeak)
{
  auto* const segment = take(4);
  EXPECT_TRUE(segments->deallocate(segment, blocks(4), nullptr));
  EXPECT_EQ(chain.device->view().statistics().managed_bytes, 0U);
  EXPECT_EQ(chain.account->used_bytes(), 0U);
  EXPECT_EQ(segments->statistics().segment_bytes, 0U);
  EXPECT_EQ(segments->statistics().peak_segment_bytes, blocks(4));
  EXPECT_FALSE(segments->deallocate(segment, blocks(4), nullptr));  // twice
}

TEST_F(TorchSegments, StrangePointersAndSizesAreNotGivenBack)
{
  auto* const segment = take(4);
  int local           = 0;
  EXPECT_FALSE(segments->deallocate(&local, blocks(4), nullptr));
  EXPECT_FALSE(segments->deallocate(nullptr, blocks(4), nullptr));
  EXPECT_FALSE(segments->deallocate(static_cast<char*>(segment) + 512, blocks(4), nullptr));
  EXPECT_FALSE(segments->deallocate(segment, blocks(3), nullptr));
  EXPECT_EQ(segments->statistics().segment_bytes, blocks(4));
  EXPECT_TRUE(segments->deallocate(segment, blocks(4), nullptr));
}

TEST_F(TorchSegments, MaximumHoldsAndTheRefusalSaysWhy)
{
  auto* const most = take(maximum_blocks);
  EXPECT_NE(most, nullptr);
  EXPECT_EQ(take(1), nullptr);
  EXPECT_EQ(segments->statistics().refused, 1U);
  auto const said = segments->last_refusal();
  EXPECT_NE(said.find(std::to_string(blocks(1)) + " bytes asked"), std::string::npos) << said;
  EXPECT_NE(said.find(std::to_string(blocks(maximum_blocks))), std::string::npos) << said;
  EXPECT_TRUE(segments->deallocate(most, blocks(maximum_blocks), nullptr));
  EXPECT_NE(take(1), nullptr);  // room again
}

TEST_F(TorchSegments, FreeSegmentsLetARequestPassTheMaximumAndAreOwed)
{
  auto* const kept = take(20);
  auto* const free = take(30);
  segments->follow({{address_of(kept), blocks(20)}});
  EXPECT_EQ(take(45), nullptr);  // 20 live, and 64 is the maximum
  auto* const larger = take(40);
  EXPECT_NE(larger, nullptr);
  EXPECT_EQ(segments->owed_bytes(), blocks(26));
  EXPECT_TRUE(segments->take_owed());
  EXPECT_FALSE(segments->take_owed());
  EXPECT_TRUE(segments->deallocate(free, blocks(30), nullptr));
  EXPECT_EQ(segments->owed_bytes(), 0U);
  EXPECT_EQ(segments->statistics().segment_bytes, blocks(60));
  EXPECT_EQ(segments->statistics().in_place, 1U);
}

TEST_F(TorchSegments, SegmentThatIsAboutToBeHandedOutIsNotFree)
{
  segments->follow({});
  auto* const taken = take(40);
  EXPECT_EQ(take(30), nullptr);
  segments->on_allocate(address_of(taken));
  EXPECT_EQ(take(30), nullptr);
  segments->on_free(address_of(taken));
  EXPECT_NE(take(30), nullptr);
}

TEST_F(TorchSegments, ScarcityIsToldOnceAboveABoundOrAfterARefusal)
{
  int calls       = 0;
  auto const tell = [](void* argument) { ++*static_cast<int*>(argument); };
  segments->on_scarcity(tell, &calls, blocks(32));
  EXPECT_NE(take(32), nullptr);
  EXPECT_EQ(calls, 0);
  EXPECT_NE(take(1), nullptr);
  EXPECT_NE(take(1), nullptr);
  EXPECT_EQ(calls, 1);
  auto const others = make(chain);
  others->on_scarcity(tell, &calls, blocks(32));
  EXPECT_EQ(others->allocate(blocks(maximum_blocks + 1), nullptr), nullptr);
  EXPECT_EQ(calls, 2);
}

TEST_F(TorchSegments, SizeThatOverflowsIsRefused)
{
  EXPECT_NE(take(1), nullptr);
  EXPECT_EQ(segments->allocate(~std::size_t{0}, nullptr), nullptr);
  EXPECT_EQ(segments->statistics().segment_bytes, blocks(1));
}

TEST_F(TorchSegments, CapOfTheProcessIsARefusalThatNamesIt)
{
  auto* const others =
    chain.managed.allocate(tests::default_stream, blocks(simulated_chain::limit_blocks - 2), 256);
  EXPECT_EQ(take(4), nullptr);
  EXPECT_NE(segments->last_refusal().find("RMM_UVM_MANAGED_LIMIT"), std::string::npos);
  EXPECT_EQ(segments->statistics().segment_bytes, 0U);
  chain.managed.deallocate(
    tests::default_stream, others, blocks(simulated_chain::limit_blocks - 2), 256);
}

TEST_F(TorchSegments, DriverErrorIsARefusalThatNamesIt)
{
  chain.device->answers().plan("allocate_managed", {status_code::driver_error, 700, "planned"}, 0);
  EXPECT_EQ(take(4), nullptr);
  EXPECT_NE(segments->last_refusal().find("700"), std::string::npos);
  EXPECT_EQ(segments->statistics().segment_bytes, 0U);
  EXPECT_EQ(chain.account->used_bytes(), 0U);
}

struct pressure_seen {
  torch_segments* segments{nullptr};
  int calls{0};
  std::uint64_t segments_then{0};
};

void see_pressure(void* argument)
{
  auto& seen = *static_cast<pressure_seen*>(argument);
  ++seen.calls;
  seen.segments_then = seen.segments->statistics().segments;
  seen.segments->follow({});  // whoever is called may call: nothing is locked
}

TEST_F(TorchSegments, PressureIsToldOnceFromWithinTheRequestThatPassesTheBudget)
{
  pressure_seen seen{segments.get()};
  segments->on_pressure(see_pressure, &seen);
  EXPECT_NE(take(budget_blocks), nullptr);
  EXPECT_EQ(seen.calls, 0);  // as much as the budget is not past it
  EXPECT_NE(take(1), nullptr);
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.segments_then, 2U);
  EXPECT_NE(take(1), nullptr);
  EXPECT_EQ(seen.calls, 1);
}

TEST_F(TorchSegments, PressureThatWasThereBeforeIsToldAtOnce)
{
  EXPECT_NE(take(budget_blocks + 1), nullptr);
  pressure_seen seen{segments.get()};
  segments->on_pressure(see_pressure, &seen);
  EXPECT_EQ(seen.calls, 1);
}

TEST_F(TorchSegments, WithoutABudgetThereIsNoPressure)
{
  simulated_chain plain;
  auto const those = make(plain);
  pressure_seen seen{those.get()};
  those->on_pressure(see_pressure, &seen);
  EXPECT_NE(those->allocate(blocks(maximum_blocks), nullptr), nullptr);
  EXPECT_EQ(seen.calls, 0);
}

TEST_F(TorchSegments, NothingIsCountedBeforeItIsFollowed)
{
  auto const start = address_of(take(budget_blocks + 4));
  segments->on_allocate(start);
  segments->on_free(start);
  EXPECT_EQ(segments->statistics().reused, 0U);
  EXPECT_EQ(segments->statistics().freed, 0U);
  EXPECT_EQ(residency().dropped_bytes, 0U);
}

TEST_F(TorchSegments, WhatIsNotListedIsDeadAndDroppedForTheNextSegment)
{
  auto const start = address_of(take(budget_blocks));
  EXPECT_NE(take(1), nullptr);  // pressure: frees are fenced from here on
  segments->follow({{start, blocks(4)}});
  EXPECT_NE(take(8), nullptr);  // free as a whole: nothing comes yet
  auto const copied = residency().evicted_bytes;
  chain.residency->bring({start, blocks(4)}, nullptr);
  segments->on_allocate(start + blocks(4));
  segments->on_free(start + blocks(4));
  EXPECT_EQ(segments->statistics().reused, 1U);
  EXPECT_EQ(segments->statistics().freed, 1U);
  EXPECT_EQ(segments->statistics().unfenced, 0U);
  EXPECT_NE(take(budget_blocks), nullptr);
  auto const other = address_of(take(budget_blocks));
  segments->on_allocate(other);  // as much as the budget
  EXPECT_GE(residency().dropped_bytes, blocks(8));
  EXPECT_LE(residency().evicted_bytes - copied, blocks(5));  // what is listed, and the second one
}

TEST_F(TorchSegments, WhatIsListedStaysLiveAndIsCopied)
{
  auto const start = address_of(take(budget_blocks));
  EXPECT_NE(take(1), nullptr);
  segments->follow({{start, blocks(budget_blocks)}});
  auto const other = address_of(take(budget_blocks));
  segments->on_allocate(other);
  EXPECT_EQ(residency().dropped_bytes, 0U);
  EXPECT_GE(residency().evicted_bytes, blocks(budget_blocks));
}

TEST_F(TorchSegments, SegmentOfLaterTimesIsFollowedUntilUnfollowed)
{
  segments->follow({});
  auto const followed = address_of(take(2));
  segments->unfollow(false);
  auto const untold = address_of(take(2));
  segments->on_allocate(followed);
  segments->on_allocate(untold);
  EXPECT_EQ(segments->statistics().reused, 1U);
  segments->follow({});
  segments->on_allocate(untold);
  EXPECT_EQ(segments->statistics().reused, 2U);
}

TEST_F(TorchSegments, FreesAreNotFencedOnceSeveralStreamsUseAnything)
{
  EXPECT_NE(take(budget_blocks + 1), nullptr);
  segments->follow({});
  auto const start = address_of(take(8));
  for (bool const several : {false, true}) {
    if (several) { segments->several_streams(); }
    segments->on_allocate(start);
    auto const before = residency().unfenced_frees;
    segments->on_free(start);
    EXPECT_EQ(residency().unfenced_frees - before, several ? 1U : 0U);
    EXPECT_EQ(segments->statistics().unfenced, several ? 1U : 0U);
  }
}

TEST_F(TorchSegments, MeasuredSizeIsAllThatComesTheNextTime)
{
  segments->follow({});
  auto const start = address_of(take(8));
  for (int round = 0; round < 4; ++round) {  // after nothing, then after itself, three times
    segments->on_allocate(start);
    segments->measured(start, blocks(2));
    segments->on_free(start);
  }
  static_cast<void>(chain.residency->evict({start, blocks(8)}, nullptr));
  ASSERT_EQ(chain.device->view().resident_bytes({start, blocks(8)}), 0U);
  segments->on_allocate(start);
  EXPECT_EQ(chain.device->view().resident_bytes({start, blocks(8)}), blocks(2));
}

TEST_F(TorchSegments, SmallSegmentsStayOnTheDeviceUpToAnEighthOfTheBudget)
{
  for (std::size_t number = 0; number < 4; ++number) {
    EXPECT_NE(take(1), nullptr);
  }
  EXPECT_NE(take(2), nullptr);  // not small
  EXPECT_EQ(residency().pinned_bytes, blocks(budget_blocks / 8));
}

TEST_F(TorchSegments, NothingInSmallSegmentsIsFollowedAndNothingOfThemLeaves)
{
  auto const before = address_of(take(1));
  segments->follow({});
  auto const after = address_of(take(1));
  for (auto const start : {before, after}) {
    segments->on_allocate(start);
    segments->on_free(start);
  }
  EXPECT_EQ(segments->statistics().reused, 0U);
  EXPECT_EQ(segments->statistics().freed, 0U);
  segments->on_allocate(address_of(take(budget_blocks)));
  for (auto const start : {before, after}) {
    EXPECT_EQ(chain.device->view().resident_bytes({start, blocks(1)}), blocks(1));
  }
  // Those past an eighth of the budget are like any others.
  for (std::size_t number = 0; number < 8; ++number) {
    segments->on_allocate(address_of(take(1)));
  }
  EXPECT_GT(segments->statistics().reused, 1U);
}

TEST_F(TorchSegments, SmallSegmentThatIsGivenBackMakesRoomForAnotherOne)
{
  for (std::size_t number = 0; number < budget_blocks; ++number) {
    auto* const segment = take(1);
    EXPECT_EQ(residency().pinned_bytes, blocks(1)) << number;
    EXPECT_TRUE(segments->deallocate(segment, blocks(1), nullptr));
    EXPECT_EQ(residency().pinned_bytes, 0U);
  }
}

TEST_F(TorchSegments, OwnMemoryMayFailAtAnyPointOfASegmentAndNothingIsLeaked)
{
  for (bool const followed : {false, true}) {
    auto const failures = tests::failures_of([&](std::size_t nth) {
      simulated_chain fresh;
      fresh.residency->start_budget(settings);
      auto const those = make(fresh);
      if (followed) { those->follow({}); }
      void* segment = nullptr;
      bool over     = false;
      {
        tests::failing_new const failing{nth};
        segment = those->allocate(blocks(1), nullptr);
        over    = !tests::failing_new::has_failed();
      }
      if (segment != nullptr) {
        EXPECT_EQ(those->statistics().segment_bytes, blocks(1)) << nth;
        EXPECT_TRUE(those->deallocate(segment, blocks(1), nullptr)) << nth;
      } else {
        EXPECT_EQ(those->statistics().refused, 1U) << nth;
      }
      EXPECT_EQ(those->statistics().segment_bytes, 0U) << nth;
      EXPECT_EQ(fresh.account->used_bytes(), 0U) << nth;
      EXPECT_EQ(fresh.managed.slab_bytes(), 0U) << nth;
      EXPECT_EQ(fresh.device->view().statistics().managed_bytes, 0U) << nth;
      return over;
    });
    EXPECT_GT(failures, 4U);
  }
}

/** @brief Processor time of following so many segments, in each of which something lives. */
[[nodiscard]] double clocks_a_segment(std::size_t count)
{
  constexpr std::size_t bytes = 65536;
  simulated_chain chain;
  torch_segments segments{chain.managed, chain.residency, blocks(simulated_chain::limit_blocks)};
  std::vector<void*> taken;
  std::vector<memory_range> live;
  for (std::size_t each = 0; each < count; ++each) {
    taken.push_back(segments.allocate(bytes, nullptr));
    live.push_back({address_of(taken.back()), bytes / 2});
  }
  auto const begin = std::clock();
  segments.follow(live);
  auto const end = std::clock();
  for (auto* const segment : taken) {
    EXPECT_TRUE(segments.deallocate(segment, bytes, nullptr));
  }
  return static_cast<double>(end - begin) / static_cast<double>(count);
}

TEST(TorchSegmentsFollow, DoesNotLookAtAllThatLivesForEachSegment)
{
  EXPECT_LT(clocks_a_segment(8000), 4 * clocks_a_segment(500));
}

}  // namespace
}  // namespace rmm_uvm::mr

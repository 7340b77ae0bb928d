// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What an operation was just announced to use does not leave for its own results.
#include "residency_manager_fixture.hpp"

namespace rmm_uvm::tests {
namespace {

class LastAnnounced : public ResidencyManager {
 protected:
  /** @brief Rounds of an operation on each of `count` pairs of blocks, until they are foreseen. */
  void learn_rounds(std::size_t count)
  {
    for (std::size_t pair = 0; pair < count; ++pair) {
      allocate(2 * pair, 2);
    }
    for (int round = 0; round < 8; ++round) {
      for (std::size_t pair = 0; pair < count; ++pair) {
        operate(pair);
      }
    }
    ASSERT_TRUE(manager->statistics().foresees);
  }
  /** @brief An operation on a pair of blocks, whose result is four blocks and lives shortly. */
  void operate(std::size_t pair)
  {
    touch(2 * pair, 2);
    static_cast<void>(moves());
    allocate(24, 4);
    in_use_left_ += left_of(pair);
    free(24, 4);
  }
  /** @brief Blocks of a pair that are not on the device, by the calls since the last time. */
  [[nodiscard]] std::size_t left_of(std::size_t pair)
  {
    std::size_t left = 0;
    for (auto const& each : moves()) {
      if (each.name != "prefetch" || each.device_id != location::host_id) { continue; }
      for (auto const& range : each.ranges) {
        for (std::size_t block = 2 * pair; block < 2 * pair + 2; ++block) {
          left += range.covers(at(block)) ? 1 : 0;
        }
      }
    }
    return left;
  }

  std::size_t in_use_left_{0};
};

TEST_F(LastAnnounced, LeavesForNoResultOfItsOwnOperation)
{
  for (auto const policy : {eviction_policy::lru, eviction_policy::repeat}) {
    ledger.remove_slab(slab.address);
    fetches_ahead = false;
    make(policy);
    if (policy == eviction_policy::repeat) {
      learn_rounds(6);
    } else {
      for (std::size_t pair = 0; pair < 6; ++pair) {
        allocate(2 * pair, 2);
        operate(pair);
      }
    }
    EXPECT_EQ(in_use_left_, 0U) << to_string(policy);
  }
}

TEST_F(LastAnnounced, OfFifoLeavesInItsTurnAsInTheKernelDriver)
{
  make(eviction_policy::fifo);
  allocate(0, 8);
  touch(0, 2);
  static_cast<void>(moves());
  allocate(8, 2);
  EXPECT_EQ(moves().front(), to_host(0, 2));
}

TEST_F(LastAnnounced, CoversWhatSeveralStreamsUsedOneAfterTheOther)
{
  auto const of = [](std::uintptr_t handle) { return reinterpret_cast<stream_handle>(handle); };
  last_announced announced;
  EXPECT_FALSE(announced.cover(never_used, 3));
  announced.note(of(7), 5, 9);
  announced.note(of(8), 10, 12);
  EXPECT_TRUE(announced.cover(5, 12));
  EXPECT_TRUE(announced.cover(6, 6));
  EXPECT_FALSE(announced.cover(4, 9));
  EXPECT_FALSE(announced.cover(9, 13));
  announced.note(of(7), 20, 20);
  EXPECT_FALSE(announced.cover(9, 12));
  EXPECT_TRUE(announced.cover(10, 12));
}

TEST_F(LastAnnounced, LeavesWhereNothingElseCan)
{
  make();
  allocate(0, 6);
  touch(0, 6);
  allocate(8, 4);
  EXPECT_EQ(manager->statistics().over_budget, 0U);
  EXPECT_LE(manager->statistics().resident_bytes, budget);
}

TEST_F(LastAnnounced, LeavesLikeOthersOnceItsStreamAnnouncesMore)
{
  make();
  allocate(0, 4);
  touch(0, 4);
  allocate(4, 4);
  touch(4, 4);
  static_cast<void>(moves());
  allocate(8, 4);
  EXPECT_EQ(moves().front(), to_host(0, 2));
}

}  // namespace
}  // namespace rmm_uvm::tests

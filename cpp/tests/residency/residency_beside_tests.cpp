// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is used on a neighbour, and what has a copy on the host.
#include "residency_manager_fixture.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::ResidencyManager;

class ResidencyBeside : public ResidencyManager {
 protected:
  static constexpr int other = 1;

  void SetUp() override
  {
    neighbors       = {{other}};
    rates           = {51'000'000'000, 24'000'000'000, 205'000'000'000, 205'000'000'000};
    fetches_ahead   = false;
    driver->on_call = [this](driver_call const& call) { note(call); };
  }
  /** @brief What was advised since the last time, in short. */
  [[nodiscard]] std::vector<memory_advice> advice()
  {
    std::vector<memory_advice> found;
    for (auto const& call : driver->take_calls("advise")) {
      found.push_back(*call.advice);
    }
    return found;
  }
  [[nodiscard]] calls advised_and_moved()
  {
    auto found = driver->take_calls();
    std::erase_if(found, [](driver_call const& call) {
      return call.name != "advise" && call.name != "prefetch";
    });
    return found;
  }
  /** @brief Goes over twelve blocks, of which eight fit, until the order is known. */
  void go_round(int rounds)
  {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t block = 0; block < 12; ++block) {
        touch(block, 1);
      }
    }
  }
  /** @brief What the driver has been told about a block since it was made, and not taken back. */
  [[nodiscard]] std::vector<memory_advice> told_about(memory_range block) const
  {
    std::vector<memory_advice> found;
    for (auto const& [what, ranges] : told) {
      if (std::any_of(
            ranges.begin(), ranges.end(), [&](auto each) { return each == block.address; })) {
        found.push_back(what);
      }
    }
    return found;
  }
  /** @brief Notes what is advised, block by block. */
  void note(driver_call const& call)
  {
    if (!call.advice) { return; }
    auto const begins = [](memory_advice what) {
      return what == memory_advice::read_mostly || what == memory_advice::preferred_location ||
             what == memory_advice::accessed_by;
    };
    auto const what = *call.advice;
    auto const key  = begins(what) ? what : memory_advice(static_cast<int>(what) - 1);
    for (auto at = call.ranges[0].address; at < call.ranges[0].end(); at += va_block_bytes) {
      if (begins(what)) {
        told[key].insert(at);
      } else {
        told[key].erase(at);
      }
    }
  }
  std::map<memory_advice, std::set<std::uintptr_t>> told;
  void fill()
  {
    for (std::size_t block = 0; block < 12; ++block) {
      allocate(block, 1);
    }
  }
  /** @brief So many uses of others. */
  void use_others(std::size_t uses)
  {
    for (std::size_t use = 0; use < uses; ++use) {
      touch(6 + use % 2, 1);
    }
  }
};

TEST_F(ResidencyBeside, WhatIsStreamedThroughIsUsedWhereItLies)
{
  in_place = true;
  make(eviction_policy::repeat);
  fill();
  go_round(6);
  auto const before = manager->statistics();
  static_cast<void>(driver->take_calls());
  go_round(1);
  auto const after = manager->statistics();
  EXPECT_GT(after.in_place_bytes, before.in_place_bytes);
  // What stays on the device is used there, what stays beside is used there: nothing moves.
  EXPECT_TRUE(moves().empty());
  EXPECT_EQ(after.harvested_bytes, blocks(4));
}

TEST_F(ResidencyBeside, WhatIsUsedWhereItLiesIsMappedOnceAndUnmappedWhenItComes)
{
  in_place = true;
  make(eviction_policy::repeat);
  fill();
  go_round(7);
  auto const made = advice();
  ASSERT_FALSE(made.empty());
  EXPECT_EQ(std::count(made.begin(), made.end(), memory_advice::accessed_by) -
              std::count(made.begin(), made.end(), memory_advice::unset_accessed_by),
            4);
  for (std::size_t block = 0; block < 12; ++block) {
    manager->prefetch(at(block), stream);  // it is wanted here after all
  }
  auto const ended = advice();
  EXPECT_GE(std::count(ended.begin(), ended.end(), memory_advice::unset_accessed_by), 4);
}

TEST_F(ResidencyBeside, NothingIsUsedWhereItLiesUnlessAsked)
{
  make(eviction_policy::repeat);
  fill();
  go_round(7);
  EXPECT_TRUE(advice().empty());
  EXPECT_EQ(manager->statistics().in_place_bytes, 0U);
}

TEST_F(ResidencyBeside, MappingThatFailsLeavesTheBlockToBeFetched)
{
  in_place = true;
  make(eviction_policy::repeat);
  fill();
  driver->answers["advise"] = {status_code::driver_error, 1, "cuMemAdvise"};
  go_round(7);
  auto const found = manager->statistics();
  EXPECT_EQ(found.in_place_bytes, 0U);
  EXPECT_GT(found.failed_calls, 0U);
  EXPECT_GT(found.from_neighbor_bytes, 0U);
}

TEST_F(ResidencyBeside, WhatLiesUnusedIsCopiedAndThenGivenBackAtOnce)
{
  copy_beside = true;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  static_cast<void>(driver->take_calls());
  manager->run_pending();
  EXPECT_TRUE(moves().empty());  // used a moment ago
  use_others(64);
  manager->run_pending();
  EXPECT_EQ(manager->statistics().copied_beside_bytes, blocks(2));
  static_cast<void>(driver->take_calls());
  driver->neighbor_level.free_bytes = driver->neighbor_level.total_bytes / 16 - blocks(2);
  manager->run_pending();
  EXPECT_TRUE(moves().empty());
  auto const found = manager->statistics();
  EXPECT_EQ(found.given_back_bytes, blocks(2));
  EXPECT_EQ(found.given_back_at_once_bytes, blocks(2));
}

TEST_F(ResidencyBeside, WhatHasACopyComesFromTheNeighbourAndLosesTheCopy)
{
  copy_beside = true;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0)), blocks(1));
  use_others(64);
  manager->run_pending();
  static_cast<void>(driver->take_calls());
  touch(0, 1);
  driver_call const belongs{"advise", {at(0)}, nullptr, other, memory_advice::preferred_location};
  auto unshared   = belongs;
  unshared.advice = memory_advice::unset_read_mostly;
  auto anywhere   = belongs;
  anywhere.advice = memory_advice::unset_preferred_location;
  EXPECT_EQ(advised_and_moved(), (calls{belongs, unshared, anywhere, fetched(0, 1)}));
}

TEST_F(ResidencyBeside, AdviceOfNeighbouringBlocksEndsTogether)
{
  copy_beside = true;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0, 4)), blocks(4));
  use_others(64);
  manager->run_pending();
  ASSERT_EQ(manager->statistics().copied_beside_bytes, blocks(4));
  static_cast<void>(driver->take_calls());
  touch(0, 4);
  EXPECT_EQ(advice().size(), 3U);
}

TEST_F(ResidencyBeside, AdviceOfBlocksThatAreNotNeighboursEndsForEach)
{
  copy_beside = true;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0)), blocks(1));
  EXPECT_EQ(manager->evict(at(2)), blocks(1));
  use_others(64);
  manager->run_pending();
  ASSERT_EQ(manager->statistics().copied_beside_bytes, blocks(2));
  static_cast<void>(driver->take_calls());
  touch(0, 4);
  EXPECT_EQ(advice().size(), 6U);
}

TEST_F(ResidencyBeside, CopyThatFailsIsNotTriedAgain)
{
  copy_beside = true;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  use_others(64);
  driver->answers["advise"] = {status_code::driver_error, 1, "cuMemAdvise"};
  manager->run_pending();
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
  manager->run_pending();
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
  EXPECT_EQ(manager->statistics().copied_beside_bytes, 0U);
}

TEST_F(ResidencyBeside, CopyEndsAlsoWherePagesComeByFaults)
{
  copy_beside = true;
  fetch       = false;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  use_others(64);
  manager->run_pending();
  ASSERT_EQ(manager->statistics().copied_beside_bytes, blocks(2));
  static_cast<void>(driver->take_calls());
  touch(0, 2);
  auto const ended = advice();
  EXPECT_EQ(std::count(ended.begin(), ended.end(), memory_advice::unset_read_mostly), 1);
}

TEST_F(ResidencyBeside, WhatAUserAdvisesAboutLeavesTheNeighbourAndStaysAdvised)
{
  copy_beside = true;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0, 2)), blocks(2));
  use_others(64);
  manager->run_pending();
  ASSERT_EQ(manager->statistics().copied_beside_bytes, blocks(2));
  static_cast<void>(driver->take_calls());
  adviser.advise(at(0), {true, preferred_place::device});
  manager->on_advised(at(0));
  EXPECT_EQ(told_about(at(0)),
            (std::vector{memory_advice::read_mostly, memory_advice::preferred_location}));
  EXPECT_EQ(manager->statistics().harvested_bytes, blocks(1));
  EXPECT_EQ(manager->statistics().given_back_bytes, 0U);  // no owner asked
  touch(0, 2);
  EXPECT_EQ(told_about(at(0)),
            (std::vector{memory_advice::read_mostly, memory_advice::preferred_location}));
  EXPECT_TRUE(told_about(at(1)).empty());  // that was ours, and has ended
}

TEST_F(ResidencyBeside, WhatAUserTakesBackEndsTheCopyToo)
{
  copy_beside = true;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0)), blocks(1));
  use_others(64);
  manager->run_pending();
  adviser.advise(at(0), {false, std::nullopt});
  manager->on_advised(at(0));
  EXPECT_TRUE(told_about(at(0)).empty());
  EXPECT_EQ(manager->statistics().harvested_bytes, 0U);
  static_cast<void>(driver->take_calls());
  touch(0, 1);
  EXPECT_EQ(advised_and_moved(), (calls{fetched(0, 1)}));
}

TEST_F(ResidencyBeside, AdviceThatComesWhileACopyEndsHolds)
{
  copy_beside = true;
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0)), blocks(1));
  use_others(64);
  manager->run_pending();
  {
    // Entered and told, but the manager has not heard of it yet.
    adviser.advise(at(0), {std::nullopt, preferred_place::device});
  }
  touch(0, 1);
  EXPECT_EQ(told_about(at(0)), std::vector{memory_advice::preferred_location});
}

TEST_F(ResidencyBeside, AdviceAboutWhatLiesNowhereBesideMovesNothing)
{
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(0)), blocks(1));
  static_cast<void>(driver->take_calls());
  adviser.advise(at(1), {true, std::nullopt});
  manager->on_advised(at(1));
  EXPECT_TRUE(moves().empty());
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A process forks while the manager's thread is at it: the child goes on by itself.
#include "../support/forked.hpp"
#include "random_program.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace rmm_uvm {
namespace {

using tests::in_child;
using tests::random_program;
using tests::small_budget;

/** @brief Does anything with a budget, without its thread. @return whether all was well */
[[nodiscard]] bool goes_on(small_budget& memory, std::uint64_t seed)
{
  random_program program{memory, seed};
  auto const lost = program.run(40, [] {});
  memory.manager->run_pending();
  memory.manager->flush();
  auto const statistics = memory.manager->statistics();
  return lost == 0 && statistics.failed_calls == 0 && !memory.manager->settings().background &&
         statistics.resident_bytes <= tests::blocks(small_budget::budget_blocks);
}

TEST(ResidencyFork, ChildFindsNoLockTakenAndKeepsTheBudgetByItself)
{
  small_budget memory{eviction_policy::lru, true};
  for (std::uint64_t round = 0; round < 20; ++round) {
    random_program program{memory, round};
    // The thread has much to do after each step: it is in the middle of it at most of the forks.
    bool well = true;
    EXPECT_EQ(
      program.run(6, [&] { well = in_child([&] { return goes_on(memory, round); }) && well; }), 0U);
    ASSERT_TRUE(well) << "round " << round;
  }
  EXPECT_TRUE(memory.manager->settings().background);  // the parent's thread goes on
  memory.manager->flush();
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
}

TEST(ResidencyFork, ChildForksInItsTurn)
{
  small_budget memory{eviction_policy::repeat, true};
  for (std::uint64_t round = 0; round < 10; ++round) {
    EXPECT_TRUE(in_child([&] {
      bool const below = in_child([&] { return goes_on(memory, round); });
      return below && goes_on(memory, round);
    }));
  }
}

}  // namespace
}  // namespace rmm_uvm

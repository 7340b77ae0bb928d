// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Properties, over random programs: no policy loses a byte, and the budget holds to the byte.
#include "random_program.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::random_program;
using tests::small_budget;

constexpr std::size_t budget_bytes = blocks(small_budget::budget_blocks);

class ResidencyContents : public testing::TestWithParam<tests::policy_and_capacity> {};

/** @brief A random program under a budget that fetches: contents and the budget hold. */
void expect_all_holds(small_budget& memory, std::uint64_t seed)
{
  std::size_t over = 0;
  random_program program{memory, seed};
  auto const lost = program.run(1500, [&] {
    memory.manager->run_pending();
    // Pages on the device, as the device itself counts them.
    if (memory.device->view().resident_bytes(memory.slab) > budget_bytes) { ++over; }
  });
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(over, 0U);
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
  EXPECT_EQ(memory.manager->statistics().over_budget, 0U);
  EXPECT_LE(memory.manager->statistics().peak_resident_bytes, budget_bytes);
  EXPECT_GT(memory.manager->statistics().dropped_bytes, 0U);
  EXPECT_GT(memory.manager->statistics().evicted_bytes, 0U);
}

TEST_P(ResidencyContents, NoByteIsLostAndTheBudgetHolds)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, false, capacity};
  expect_all_holds(memory, 11);
}

TEST_P(ResidencyContents, NoByteIsLostAndTheBudgetHoldsWhereDeadBlocksAreRanked)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, false, capacity, true, true};
  expect_all_holds(memory, 12);
}

TEST_P(ResidencyContents, NoByteIsLostAndTheBudgetHoldsWherePagesComeByFaults)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, false, capacity, false};
  std::size_t over = 0;
  random_program program{memory, 11};
  auto const lost = program.run(1500, [&] {
    if (memory.device->view().resident_bytes(memory.slab) > budget_bytes) { ++over; }
  });
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(over, 0U);
  EXPECT_EQ(memory.manager->statistics().over_budget, 0U);
  EXPECT_LE(memory.manager->statistics().peak_resident_bytes, budget_bytes);
  EXPECT_EQ(memory.manager->statistics().dropped_bytes, 0U);
  EXPECT_GT(memory.manager->statistics().evicted_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         ResidencyContents,
                         tests::policies_and_capacities(),
                         tests::name_of);

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Properties, over random programs in which budgets start, change and end at any moment: no byte is
// lost, and a budget that stays holds. Twins that think they know what lives in a block lose some.
#include "budget_changes_program.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <tuple>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::budget_changes_program;
using tests::changing_budget;
using tests::wrong_knowledge;

/** @brief How often contents did not hold while a budget changed every 20 steps or so. */
[[nodiscard]] std::size_t lost_by(changing_budget& memory, std::uint64_t seed)
{
  std::mt19937_64 random{seed};
  budget_changes_program program{memory, seed};
  return program.run(1500, [&] {
    memory.residency.run_pending();
    if (random() % 20 == 0) { memory.change_at_random(random); }
  });
}

class BudgetChangesContents
  : public testing::TestWithParam<std::tuple<eviction_policy, std::size_t>> {};

TEST_P(BudgetChangesContents, NoByteIsLost)
{
  auto const [policy, capacity] = GetParam();
  changing_budget memory{policy, false, capacity};
  EXPECT_EQ(lost_by(memory, 5), 0U);
  EXPECT_EQ(memory.residency.statistics().failed_calls, 0U);
}

TEST_P(BudgetChangesContents, ABudgetThatStaysHoldsAndDropsWhatIsKnownToBeDead)
{
  auto const [policy, capacity] = GetParam();
  changing_budget memory{policy, false, capacity};
  EXPECT_EQ(lost_by(memory, 6), 0U);
  memory.start(6);
  std::size_t over = 0;
  budget_changes_program program{memory, 7};
  auto const lost = program.run(1500, [&] {
    memory.residency.run_pending();
    if (memory.device->view().resident_bytes(memory.slab) > blocks(6)) { ++over; }
  });
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(over, 0U);
  auto const kept = memory.residency.budget_statistics().value();
  EXPECT_EQ(kept.failed_calls, 0U);
  EXPECT_GT(kept.dropped_bytes, 0U);  // blocks healed
}

TEST_P(BudgetChangesContents, TwinsThatKnowBetterLoseBytes)
{
  auto const [policy, capacity] = GetParam();
  for (auto const what : {wrong_knowledge::all_is_dead, wrong_knowledge::all_is_told}) {
    changing_budget memory{policy, false, capacity, what};
    EXPECT_GT(lost_by(memory, 5), 0U) << static_cast<int>(what);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         BudgetChangesContents,
                         testing::Combine(testing::Values(eviction_policy::lru,
                                                          eviction_policy::repeat),
                                          testing::Values(2 * changing_budget::slab_blocks, 8)));

}  // namespace
}  // namespace rmm_uvm

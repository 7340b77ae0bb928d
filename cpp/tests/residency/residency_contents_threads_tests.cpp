// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The same properties with eight threads and the manager's own: none loses a byte, none halts
// another; also run by the thread sanitizer.
#include "../support/threads.hpp"
#include "random_program.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>

namespace rmm_uvm {
namespace {

using tests::first_allocations;
using tests::random_program;
using tests::small_budget;
using tests::thread_count;

/** @brief Allocations whose contents did not hold, of programs that share a slab and a budget. */
[[nodiscard]] std::size_t lost_by_threads(small_budget& memory)
{
  std::atomic<std::size_t> lost{0};
  tests::on_threads(thread_count, [&](std::size_t index) {
    random_program program{memory, 100 + index};
    lost += program.run(tests::rounds_of(150), [] {});
  });
  memory.manager->flush();
  return lost;
}

class ConcurrentResidencyContents : public testing::TestWithParam<tests::policy_and_capacity> {};

TEST_P(ConcurrentResidencyContents, ThreadsNeitherLoseAByteNorHaltOneAnother)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, true, capacity};
  EXPECT_EQ(lost_by_threads(memory), 0U);
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
}

TEST_P(ConcurrentResidencyContents, ThreadsWhoseDeadBlocksAreRankedDoNeither)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, true, capacity, true, true};
  EXPECT_EQ(lost_by_threads(memory), 0U);
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
}

TEST_P(ConcurrentResidencyContents, ThreadsWhosePagesComeByFaultsDoNeitherAndKeepTheBudget)
{
  auto const [policy, capacity] = GetParam();
  small_budget memory{policy, true, capacity, false};
  EXPECT_EQ(lost_by_threads(memory), 0U);
  auto const statistics = memory.manager->statistics();
  EXPECT_EQ(statistics.failed_calls, 0U);
  EXPECT_LE(statistics.resident_bytes, tests::blocks(small_budget::budget_blocks));
}

TEST_P(ConcurrentResidencyContents, ThreadsWhoseNewMemoryWaitsDoNeither)
{
  auto const policy = std::get<0>(GetParam());
  small_budget memory{policy, true, small_budget::budget_blocks, true, false, true};
  first_allocations first{memory};
  std::atomic<std::size_t> lost{0};
  tests::on_threads(thread_count, [&](std::size_t index) {
    random_program program{memory, 100 + index};
    std::size_t step = 10 * index;
    lost += program.run(tests::rounds_of(150), [&] {
      if (++step % 16 == 0) { first.use(step / 16); }
    });
  });
  memory.manager->flush();
  EXPECT_EQ(lost + first.end(), 0U);
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         ConcurrentResidencyContents,
                         tests::policies_and_capacities(),
                         tests::name_of);

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/prefetch_policy.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::slab_address;
using ranges = std::vector<memory_range>;

TEST(PlanAllocation, WithoutDoubtDoesNothing)
{
  auto const plan = plan_allocation(block_range(slab_address, 0, 4), {}, true);
  EXPECT_TRUE(plan.kept.empty());
  EXPECT_TRUE(plan.dead.empty());
}

TEST(PlanAllocation, AlignedAllocationIsDiscardedWhole)
{
  auto const range = block_range(slab_address, 0, 4);
  auto const plan  = plan_allocation(range, ranges{range}, true);
  EXPECT_TRUE(plan.kept.empty());
  EXPECT_EQ(plan.dead, (ranges{range}));
}

TEST(PlanAllocation, EdgesArePrefetchedAndTheInsideDiscarded)
{
  memory_range const allocation{slab_address + 256, blocks(3)};
  auto const plan = plan_allocation(allocation, ranges{block_range(slab_address, 0, 4)}, true);
  EXPECT_EQ(plan.kept, (ranges{block_range(slab_address, 0, 1), block_range(slab_address, 3, 1)}));
  EXPECT_EQ(plan.dead, (ranges{block_range(slab_address, 1, 2)}));
}

TEST(PlanAllocation, OneByteShortOfABlockIsPrefetched)
{
  auto const block = block_range(slab_address, 0, 1);
  auto const plan  = plan_allocation({slab_address, va_block_bytes - 1}, ranges{block}, true);
  EXPECT_EQ(plan.kept, (ranges{block}));
  EXPECT_TRUE(plan.dead.empty());
}

TEST(PlanAllocation, WithoutDiscardEverythingIsPrefetched)
{
  auto const range = block_range(slab_address, 0, 4);
  auto const plan  = plan_allocation(range, ranges{range}, false);
  EXPECT_EQ(plan.kept, (ranges{range}));
  EXPECT_TRUE(plan.dead.empty());
}

TEST(PlanAllocation, BlockCutOffByTheSlabsEndIsPrefetched)
{
  // The slab, and the allocation with it, ends in the middle of block 1.
  memory_range const slab{slab_address, blocks(1) + 4096};
  auto const plan = plan_allocation(slab, ranges{slab}, true);
  EXPECT_EQ(plan.dead, (ranges{block_range(slab_address, 0, 1)}));
  EXPECT_EQ(plan.kept, (ranges{{slab_address + blocks(1), 4096}}));
}

/** @brief A random slab, ledger and allocation, and what the policy makes of them. */
struct random_case {
  explicit random_case(std::mt19937_64& random)
  {
    auto const draw = [&](std::size_t most) {
      return std::uniform_int_distribution<std::size_t>{0, most}(random);
    };
    slab = {slab_address + draw(2) * (va_block_bytes / 4), blocks(1 + draw(12)) + draw(3) * 4096};
    ledger.add_slab(slab);
    for (std::size_t mark = draw(6); mark > 0; --mark) {
      ledger.mark_on_device(block_range(slab_address, draw(12), 1 + draw(3)), 1);
    }
    auto const offset = draw(slab.bytes - 1) / 256 * 256;
    allocation        = {slab.address + offset, 1 + draw(slab.bytes - offset - 1)};
    runs              = ledger.doubtful_runs(allocation, 1);
    plan              = plan_allocation(allocation, runs, draw(9) != 0);
  }

  residency_ledger ledger;
  memory_range slab;
  memory_range allocation;
  ranges runs;
  prefetch_plan plan;
};

/** @brief All ranges of a plan, ascending, neighbours joined. */
ranges joined(prefetch_plan const& plan)
{
  ranges all = plan.kept;
  all.insert(all.end(), plan.dead.begin(), plan.dead.end());
  std::ranges::sort(all, {}, &memory_range::address);
  ranges result;
  for (auto const& range : all) {
    if (!result.empty() && result.back().end() == range.address) {
      result.back().bytes += range.bytes;
    } else {
      result.push_back(range);
    }
  }
  return result;
}

TEST(PlanAllocationProperties, DiscardsOnlyWholeBlocksInsideTheAllocation)
{
  std::mt19937_64 random{20261121};  // NOLINT: the same cases every time
  std::size_t discards = 0;
  for (int i = 0; i < 20'000; ++i) {
    random_case const given{random};
    for (auto const& range : given.plan.dead) {
      ++discards;
      ASSERT_EQ(range.address % va_block_bytes, 0U);
      ASSERT_EQ(range.bytes % va_block_bytes, 0U);
      ASSERT_GE(range.address, given.allocation.address);
      ASSERT_LE(range.end(), given.allocation.end());
    }
  }
  EXPECT_GT(discards, 1'000U);  // the property was put to the test
}

TEST(PlanAllocationProperties, ListsAreDisjointAndCoverTheDoubtExactly)
{
  std::mt19937_64 random{42};  // NOLINT: the same cases every time
  for (int i = 0; i < 20'000; ++i) {
    random_case const given{random};
    std::size_t bytes = 0;
    for (auto const& list : {given.plan.kept, given.plan.dead}) {
      for (auto const& range : list) {
        ASSERT_GT(range.bytes, 0U);
        bytes += range.bytes;
      }
    }
    auto const covered = joined(given.plan);
    ASSERT_EQ(covered, given.runs);
    std::size_t covered_bytes = 0;
    for (auto const& range : covered) {
      covered_bytes += range.bytes;
    }
    ASSERT_EQ(bytes, covered_bytes);  // nothing twice
  }
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A program that outlasts the clock of uses: the order in which blocks leave stays that of the
// uses.
#include "residency_manager_fixture.hpp"

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyManager;

constexpr std::size_t block_count = 12;  // half as much again as the budget

/** @brief Blocks on a device that holds `budget_blocks` of them: what was used last goes last. */
class least_recently_used {
 public:
  explicit least_recently_used(std::size_t most) : most_{most} {}

  /** @return who leaves for a block; none, and itself, are `block_count` */
  std::size_t use(std::size_t block)
  {
    auto const found = std::find(order_.begin(), order_.end(), block);
    bool const there = found != order_.end();
    if (there) { order_.erase(found); }
    auto leaves = block_count;
    if (!there && order_.size() == most_) {
      leaves = order_.front();
      order_.erase(order_.begin());
    }
    order_.push_back(block);
    return leaves;
  }
  [[nodiscard]] bool holds(std::size_t block) const
  {
    return std::find(order_.begin(), order_.end(), block) != order_.end();
  }

 private:
  std::size_t most_;
  std::vector<std::size_t> order_;
};

TEST_F(ResidencyManager, ClockThatIsTurnedBackManyTimesChangesNoOrder)
{
  clock_end = 512;
  make();
  least_recently_used expected{budget_blocks};
  for (std::size_t block = 0; block < block_count; ++block) {
    allocate(block, 1);
    static_cast<void>(expected.use(block));
  }
  std::mt19937 random{7};
  static_cast<void>(moves());
  for (int round = 0; round < 3000; ++round) {
    auto const block = random() % block_count;
    bool const there = expected.holds(block);
    auto const gone  = expected.use(block);
    touch(block, 1);
    auto const wanted = there ? calls{} : calls{to_host(gone, 1), fetched(block, 1)};
    ASSERT_EQ(moves(), wanted) << round;
  }
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(budget_blocks));
}

TEST_F(ResidencyManager, UseThatIsForeseenIsForeseenAlsoWhenTheClockIsTurnedBack)
{
  std::vector<std::size_t> evicted;
  for (use_tick const end : {residency_settings{}.clock_end, use_tick{256}}) {
    clock_end = end;
    ledger.remove_slab(slab.address);
    make(eviction_policy::repeat);
    for (std::size_t block = 0; block < block_count; ++block) {
      allocate(block, 1);
    }
    for (int round = 0; round < 100; ++round) {
      for (std::size_t block = 0; block < block_count; ++block) {
        touch(block, 1);
      }
    }
    evicted.push_back(manager->statistics().evicted_bytes);
  }
  EXPECT_EQ(evicted[0], evicted[1]);
  EXPECT_LT(evicted[0], blocks(100 * block_count / 2));  // which the order of the last use evicts
}

}  // namespace
}  // namespace rmm_uvm

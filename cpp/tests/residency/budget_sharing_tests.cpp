// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Two budgets that follow, on one simulated device: they share it, with contents that are checked.
// Each has a board place of its own, as two processes have and as two pools of one process.
#include "../support/blocks.hpp"
#include "../support/board_directory.hpp"
#include "../support/other_process.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/ipc/board_sharing.hpp>
#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;

constexpr std::size_t card_blocks   = 160;
constexpr std::size_t shared_blocks = 150;  // all but a reserve

/** @brief A program with a budget of its own: it goes over its data, and checks them. */
class sharing_program {
 public:
  sharing_program(std::shared_ptr<sim::simulated_device> device,
                  std::shared_ptr<budget_sharing> sharing,
                  std::uint8_t mark)
    : device_{std::move(device)},
      residency_{std::make_unique<managed_residency>(device_, make_epoch_source(*device_))},
      mark_{mark}
  {
    auto settings           = residency_settings::of(blocks(shared_blocks));
    settings.background     = false;
    settings.policy         = eviction_policy::lru;
    settings.followed_bytes = settings.budget_bytes;
    settings.sharing        = std::move(sharing);
    residency_->start_budget(settings);
  }
  ~sharing_program() { end(); }
  sharing_program(sharing_program const&)            = delete;
  sharing_program& operator=(sharing_program const&) = delete;
  sharing_program(sharing_program&&)                 = delete;
  sharing_program& operator=(sharing_program&&)      = delete;

  /** @param between called after each block: what others do meanwhile */
  void allocate(std::size_t count, std::function<void()> const& between = [] {})
  {
    slab_ = {0, blocks(count)};
    ASSERT_TRUE(device_->allocate_managed(slab_.bytes, slab_.address).ok());
    residency_->on_slab(slab_, nullptr, prefetch_mode::automatic);
    for (std::size_t block = 0; block < count; ++block) {
      auto const part = block_range(slab_.address, block, 1);
      residency_->on_allocate(part, nullptr, prefetch_mode::automatic);
      ASSERT_TRUE(device_->program().touch(part, true).ok());
      *word(block) = marked(block);
      between();
    }
    used_ = count;
  }
  /** @brief Uses a part of its data, and looks at what is in them; then the budget's thread works.
   */
  void step(std::size_t count = 8)
  {
    for (std::size_t each = 0; each < std::min(count, used_); ++each) {
      auto const block = next_++ % used_;
      auto const part  = block_range(slab_.address, block, 1);
      tests::touch(*residency_, part, nullptr);
      ASSERT_TRUE(device_->program().touch(part, true).ok());
      ASSERT_EQ(*word(block), marked(block)) << block;
      *word(block) += std::uint64_t{1} << 32U;
      ++rounds_[block];
    }
    idle_step();
  }
  /** @brief Works with so much more for a moment, as a merge does. */
  void use_temporary(std::size_t count)
  {
    memory_range extra{0, blocks(count)};
    ASSERT_TRUE(device_->allocate_managed(extra.bytes, extra.address).ok());
    residency_->on_slab(extra, nullptr, prefetch_mode::automatic);
    residency_->on_allocate(extra, nullptr, prefetch_mode::automatic);
    ASSERT_TRUE(device_->program().touch(extra, true).ok());
    residency_->on_free(extra, nullptr);
    auto const kept_bytes = residency_->on_slab_free(extra.address);
    ASSERT_TRUE(device_->free_managed(extra.address).ok());
    residency_->on_slab_freed(kept_bytes);
  }
  void idle_step() { residency_->run_pending(); }
  /** @brief Frees its data, and gives the memory back, as a process that ends. */
  void end()
  {
    if (residency_ == nullptr) { return; }
    residency_.reset();
    if (slab_.bytes > 0) { EXPECT_TRUE(device_->free_managed(slab_.address).ok()); }
  }
  [[nodiscard]] residency_statistics statistics() const
  {
    return residency_->budget_statistics().value_or(residency_statistics{});
  }
  /** @brief Its budget, in blocks. */
  [[nodiscard]] std::size_t budget() const { return statistics().budget_bytes / va_block_bytes; }
  [[nodiscard]] managed_residency& residency() { return *residency_; }

 private:
  [[nodiscard]] std::uint64_t* word(std::size_t block) const
  {
    return reinterpret_cast<std::uint64_t*>(block_range(slab_.address, block, 1).address);
  }
  [[nodiscard]] std::uint64_t marked(std::size_t block)
  {
    rounds_.resize(std::max(rounds_.size(), block + 1));
    return rounds_[block] << 32U | block << 8U | mark_;
  }

  std::shared_ptr<sim::simulated_device> device_;
  std::unique_ptr<managed_residency> residency_;
  std::uint8_t mark_;
  memory_range slab_;
  std::size_t used_{0};
  std::size_t next_{0};
  std::vector<std::uint64_t> rounds_;
};

class BudgetSharing : public testing::Test {
 protected:
  BudgetSharing()
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(card_blocks);
    config.backing        = true;
    config.host_pages     = true;
    device                = std::make_shared<sim::simulated_device>(config);
  }
  [[nodiscard]] std::unique_ptr<sharing_program> start(std::uint8_t mark)
  {
    std::shared_ptr<budget_sharing> sharing;
    if (agree) {
      sharing = std::make_shared<ipc::board_sharing>(directory.join(), tests::device_named(1));
    }
    return std::make_unique<sharing_program>(device, std::move(sharing), mark);
  }
  /** @brief Both programs go on. @return the largest change of either budget between two ticks */
  std::size_t run(int ticks)
  {
    std::size_t largest = 0;
    for (int tick = 0; tick < ticks; ++tick) {
      for (auto* const each : {first.get(), second.get()}) {
        if (each == nullptr) { continue; }
        auto const before = each->budget();
        each->step();
        auto const after = each->budget();
        largest          = std::max(largest, std::max(before, after) - std::min(before, after));
      }
    }
    return largest;
  }
  [[nodiscard]] std::uint64_t evicted_by_driver() const
  {
    return device->view().statistics().evicted_bytes;
  }

  /** @brief Two programs that allocate so many blocks. */
  void start_both(std::size_t of_first, std::size_t of_second)
  {
    first  = start(1);
    second = start(2);
    first->allocate(of_first);
    second->allocate(of_second);
  }

  tests::board_directory const directory;
  bool agree{true};
  std::shared_ptr<sim::simulated_device> device;
  std::unique_ptr<sharing_program> first;
  std::unique_ptr<sharing_program> second;
};

constexpr std::size_t large  = 128;  // 0.8 of the card
constexpr std::size_t small  = 16;   // 0.1
constexpr std::size_t half   = shared_blocks / 2;
constexpr std::size_t tenth  = half / 10;
constexpr std::size_t little = shared_blocks / 20;      // 5 %
constexpr std::size_t step   = shared_blocks / 64 + 1;  // a budget does not grow by less

TEST_F(BudgetSharing, TwoEqualProgramsHaveAHalfEachAndDoNotOscillate)
{
  start_both(large, large);
  run(40);
  auto const evicted = evicted_by_driver();
  EXPECT_LT(run(400), little);
  EXPECT_NEAR(static_cast<double>(first->budget()), half, tenth);
  EXPECT_NEAR(static_cast<double>(second->budget()), half, tenth);
  EXPECT_LE(first->budget() + second->budget(), shared_blocks);
  EXPECT_EQ(evicted_by_driver(), evicted);  // the kernel driver had nothing to do any more
}

TEST_F(BudgetSharing, WhatProgramsNeedNowAndThenDoesNotHaveBudgetsGoUpAndDown)
{
  start_both(large, large / 2);
  std::size_t largest = 0;
  for (int tick = 0; tick < 300; ++tick) {
    if (tick % 7 == 0) { first->use_temporary(20); }
    if (tick % 11 == 0) { second->use_temporary(30); }
    auto const changed = run(1);
    if (tick >= 60) { largest = std::max(largest, changed); }
  }
  EXPECT_LT(largest, little);
  EXPECT_NEAR(static_cast<double>(first->budget()), half, tenth);
  EXPECT_NEAR(static_cast<double>(second->budget()), half, tenth);
}

TEST_F(BudgetSharing, TwinThatDoesNotAgreeHasTheDriverEvict)
{
  agree = false;
  start_both(large, large);
  run(40);
  auto const evicted = evicted_by_driver();
  run(400);
  EXPECT_GT(first->budget() + second->budget(), shared_blocks + tenth);
  EXPECT_GT(evicted_by_driver(), evicted);
}

TEST_F(BudgetSharing, OneThatComesLaterGetsItsShareSoon)
{
  first = start(1);
  first->allocate(large);
  run(40);
  EXPECT_GE(first->budget(), large);
  second                = start(2);
  std::size_t allocated = 0;
  int lacking           = 0;  // ticks at which it has less than it may have, and wants
  second->allocate(large, [&] {
    first->step(1);
    ++allocated;
    if (second->budget() + step < std::min(allocated, half - tenth)) { ++lacking; }
  });
  EXPECT_LE(lacking, 2);
  EXPECT_NEAR(static_cast<double>(first->budget()), half, tenth);
  EXPECT_NEAR(static_cast<double>(second->budget()), half, tenth);
  EXPECT_LT(run(100), little);
}

TEST_F(BudgetSharing, OneThatWaitsInVainTakesItsShareAllTheSame)
{
  first = start(1);
  first->allocate(large);
  run(40);
  second = start(2);
  second->allocate(large);  // the first one does not even look meanwhile
  EXPECT_NEAR(static_cast<double>(second->budget()), half, tenth);
  run(2);
  EXPECT_NEAR(static_cast<double>(first->budget()), half, tenth);
}

TEST_F(BudgetSharing, TwinWithoutABoardKeepsTheFirstOneFull)
{
  agree = false;
  first = start(1);
  first->allocate(large);
  run(40);
  second = start(2);
  second->allocate(large);
  run(100);
  EXPECT_GT(first->budget() + second->budget(), shared_blocks + tenth);
}

TEST_F(BudgetSharing, OneGrowsBackWhenTheOtherEnds)
{
  start_both(large, large);
  run(100);
  second.reset();
  run(40);
  EXPECT_EQ(first->budget(), shared_blocks);
  EXPECT_EQ(first->statistics().sharers, 0U);
}

TEST_F(BudgetSharing, OneGrowsBackWhenTheOtherIsKilled)
{
  tests::other_process killed{[&] {
    return directory.join().release()->share(tests::device_named(1),
                                             {blocks(large), blocks(10), blocks(10)});
  }};
  ASSERT_TRUE(killed.succeeded());
  first = start(1);
  first->allocate(large);
  run(40);
  EXPECT_NEAR(static_cast<double>(first->budget()), half, tenth);
  killed.kill();  // the kernel drops its lock; nobody clears its words
  run(1);
  EXPECT_EQ(first->budget(), shared_blocks);
}

TEST_F(BudgetSharing, TwinWhoseProcessLivesKeepsItsShare)
{
  auto const other = directory.join();
  first            = start(1);
  first->allocate(large);
  ASSERT_TRUE(other->share(tests::device_named(1), {blocks(large), blocks(10), blocks(10)}));
  run(80);
  EXPECT_NEAR(static_cast<double>(first->budget()), half, tenth);
}

TEST_F(BudgetSharing, SmallOneHasWhatItWantsAndTheLargeOneTheRest)
{
  first = start(1);
  first->allocate(200);
  run(40);
  second = start(2);
  second->allocate(small);
  run(100);
  EXPECT_GE(second->budget(), small);
  EXPECT_LE(second->budget(), small + small / 2);
  EXPECT_GE(first->budget(), shared_blocks - small - small / 2 - 2);
  auto const fetched = second->statistics().fetched_bytes;
  EXPECT_LT(run(100), little);
  EXPECT_EQ(second->statistics().fetched_bytes, fetched);  // all of it is there
}

TEST_F(BudgetSharing, OneThatSleepsLeavesAllToTheOtherAndHasItsShareAgainWhenItWakes)
{
  start_both(large, large);
  run(100);
  auto const evicted = evicted_by_driver();
  EXPECT_GT(second->residency().sleep(), blocks(half - tenth));
  EXPECT_EQ(second->statistics().resident_bytes, 0U);
  for (int tick = 0; tick < 20; ++tick) {
    second->idle_step();
    first->step();
  }
  EXPECT_GE(first->budget(), large);
  EXPECT_EQ(evicted_by_driver(), evicted);
  static_cast<void>(second->residency().wake(nullptr));
  run(40);
  EXPECT_NEAR(static_cast<double>(first->budget()), half, tenth);
  EXPECT_NEAR(static_cast<double>(second->budget()), half, tenth);
}

TEST_F(BudgetSharing, TwoThatTakeTurnsHaveTheWholeDeviceEach)
{
  start_both(large, large);
  run(40);
  for (int turn = 0; turn < 3; ++turn) {
    for (auto* const works : {first.get(), second.get()}) {
      auto* const sleeps = works == first.get() ? second.get() : first.get();
      static_cast<void>(sleeps->residency().sleep());
      sleeps->idle_step();
      static_cast<void>(works->residency().wake(nullptr));
      for (int tick = 0; tick < 30; ++tick) {
        works->step();
      }
      EXPECT_GE(works->budget(), large);
      EXPECT_EQ(works->statistics().resident_bytes, blocks(large));
    }
  }
}

TEST_F(BudgetSharing, OneThatDoesNothingMakesRoomAndHasItsShareAgainWhenItGoesOn)
{
  start_both(large, large);
  run(100);
  for (int tick = 0; tick < 3000; ++tick) {  // a minute of ticks
    first->step();
    second->idle_step();
  }
  EXPECT_GE(first->budget(), large);
  int ticks = 0;
  while (second->budget() < half - tenth && ticks < 100) {
    run(1);
    ++ticks;
  }
  EXPECT_LE(ticks, 10);
}

TEST_F(BudgetSharing, OneWhoseBudgetDoesNotLookKeepsItsShareWhileItDoesNothing)
{
  start_both(large, large);
  run(100);
  auto const share = second->budget();
  for (int tick = 0; tick < 3000; ++tick) {  // a minute of ticks
    first->step();
  }
  EXPECT_LE(first->budget(), shared_blocks - share);
  second->step();  // its request counts as work before it looks
  EXPECT_EQ(second->budget(), share);
}

TEST_F(BudgetSharing, ABudgetThatEndsIsNotReckonedWith)
{
  start_both(large, small);
  run(40);
  EXPECT_EQ(first->statistics().sharers, 1U);
  second->residency().end_budget();
  run(2);
  EXPECT_EQ(first->statistics().sharers, 0U);
}

TEST_F(BudgetSharing, WhatCudaMallocTakesComesOffBoth)
{
  start_both(large, large);
  run(40);
  std::uintptr_t taken = 0;
  ASSERT_TRUE(device->program().allocate_device(blocks(50), taken).ok());
  run(60);
  EXPECT_NEAR(static_cast<double>(first->budget()), 50, 5);
  EXPECT_NEAR(static_cast<double>(second->budget()), 50, 5);
  ASSERT_TRUE(device->program().free_device(taken).ok());
  run(60);
  EXPECT_NEAR(static_cast<double>(first->budget()), half, tenth);
  EXPECT_NEAR(static_cast<double>(second->budget()), half, tenth);
}

}  // namespace
}  // namespace rmm_uvm

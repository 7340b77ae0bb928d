// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A budget follows what others take of a simulated device, past the edge.
#include "../support/blocks.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;

class BudgetFollower : public testing::Test {
 protected:
  static constexpr std::size_t card_blocks    = 64;
  static constexpr std::size_t reserve_blocks = 4;

  void make(bool follows = true)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(card_blocks);
    config.host_pages     = true;
    device                = std::make_shared<sim::simulated_device>(config);
    residency             = std::make_unique<managed_residency>(device, make_epoch_source(*device));
    auto settings         = residency_settings::of(blocks(card_blocks - reserve_blocks));
    settings.background   = false;
    settings.policy       = eviction_policy::lru;
    settings.followed_bytes = follows ? settings.budget_bytes : 0;
    residency->start_budget(settings);
    slab = take_slab(data_blocks);
    residency->on_allocate(slab, nullptr, prefetch_mode::automatic);
  }
  [[nodiscard]] memory_range take_slab(std::size_t count)
  {
    memory_range taken{0, blocks(count)};
    EXPECT_TRUE(device->allocate_managed(taken.bytes, taken.address).ok());
    residency->on_slab(taken, nullptr, prefetch_mode::automatic);
    return taken;
  }
  void use(memory_range range)
  {
    tests::touch(*residency, range, nullptr);
    ASSERT_TRUE(device->program().touch(range, true).ok());
  }
  /** @brief All data are used once, some blocks after the other, and written. */
  void pass()
  {
    for (std::size_t first = 0; first < data_blocks; first += 4) {
      use(block_range(slab.address, first, 4));
    }
    residency->run_pending();
  }
  [[nodiscard]] std::uint64_t evicted_by_driver() const
  {
    return device->view().statistics().evicted_bytes;
  }
  [[nodiscard]] std::size_t budget() const
  {
    return residency->budget_statistics().value_or(residency_statistics{}).budget_bytes;
  }
  std::uintptr_t others_take(std::size_t count)
  {
    std::uintptr_t address = 0;
    EXPECT_TRUE(device->program().allocate_device(blocks(count), address).ok());
    return address;
  }
  void others_give_back(std::uintptr_t address)
  {
    EXPECT_TRUE(device->program().free_device(address).ok());
  }
  void others_are_hidden()
  {
    status const untold{status_code::not_supported, 0, "unmanaged_bytes"};
    device->answers().plan("unmanaged_bytes", untold, 0);
  }

  std::shared_ptr<sim::simulated_device> device;
  std::unique_ptr<managed_residency> residency;
  memory_range slab;
  std::size_t data_blocks{96};  // half more than the card
};

TEST_F(BudgetFollower, JumpsOfOthersUpToTheReserveHaveTheDriverEvictNothing)
{
  make();
  pass();
  std::vector<std::uintptr_t> taken;
  for (int jump = 0; jump < 10; ++jump) {
    taken.push_back(others_take(reserve_blocks));
    pass();
    EXPECT_EQ(evicted_by_driver(), 0U) << jump;
    EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks * (1 + taken.size())));
  }
  for (auto const address : taken) {
    others_give_back(address);
    pass();
  }
  EXPECT_EQ(evicted_by_driver(), 0U);
  EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks));  // all of it came back
}

TEST_F(BudgetFollower, TwinThatDoesNotFollowHasTheDriverEvict)
{
  make(false);
  pass();
  for (int jump = 0; jump < 10; ++jump) {
    others_take(reserve_blocks);
    pass();
  }
  EXPECT_GT(evicted_by_driver(), 0U);
  EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks));
}

TEST_F(BudgetFollower, TheBudgetIsUsedAndNotJustKept)
{
  make();
  others_take(20);
  pass();
  pass();
  EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks - 20));
  auto const there = residency->budget_statistics().value_or(residency_statistics{});
  EXPECT_GE(there.resident_bytes, budget() - blocks(4));
  EXPECT_EQ(there.unmanaged_bytes, blocks(20));
  EXPECT_EQ(there.hidden_bytes, 0U);
}

TEST_F(BudgetFollower, WhatIsHiddenIsFollowedWhileFreeMemoryShowsIt)
{
  data_blocks = 40;
  make();
  others_are_hidden();
  auto const first = others_take(reserve_blocks + 20);
  pass();
  EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks * 2 - 20));
  EXPECT_EQ(evicted_by_driver(), 0U);
  others_give_back(first);
  // What left comes back: until then its memory may be anybody's. Then some looks, until it is sure
  // that all that was asked to come has come.
  for (int round = 0; round < 16; ++round) {
    pass();
  }
  EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks));
}

TEST_F(BudgetFollower, SlabsThatComeAndGoChangeNothing)
{
  make();
  pass();
  for (int round = 0; round < 10; ++round) {
    auto const other = take_slab(24);
    residency->on_allocate(other, nullptr, prefetch_mode::automatic);
    use(block_range(other.address, 0, 24));
    residency->on_free(other, nullptr);
    auto const kept_bytes = residency->on_slab_free(other.address);
    EXPECT_EQ(kept_bytes, blocks(24));
    pass();  // before it is given back
    EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks)) << round;
    ASSERT_TRUE(device->free_managed(other.address).ok());
    residency->on_slab_freed(kept_bytes);
    pass();
    EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks)) << round;
  }
}

TEST_F(BudgetFollower, ReadingThatFailsIsCountedAndChangesNothing)
{
  make();
  others_take(8);
  pass();
  auto const before  = budget();
  auto const counted = residency->budget_statistics().value_or(residency_statistics{}).failed_calls;
  for (int call = 0; call < 200; ++call) {
    device->answers().plan("memory", {status_code::driver_error, 1, "memory"}, 0);
  }
  others_take(2);
  pass();
  EXPECT_EQ(budget(), before);
  EXPECT_GT(residency->budget_statistics().value_or(residency_statistics{}).failed_calls, counted);
}

TEST_F(BudgetFollower, LargerJumpsAreMadeUpForWhatTheyMadeTheDriverEvict)
{
  make();
  pass();
  others_take(30);
  EXPECT_GT(evicted_by_driver(), 0U);
  pass();
  auto const once = evicted_by_driver();
  pass();
  pass();
  EXPECT_EQ(evicted_by_driver(), once);  // no more after that
  EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks - 30));
}

TEST_F(BudgetFollower, BudgetThatBeganLateFollowsToo)
{
  make(false);
  pass();
  auto settings           = residency_settings::of(blocks(card_blocks - reserve_blocks));
  settings.background     = false;
  settings.followed_bytes = settings.budget_bytes;
  residency->start_budget(settings);
  others_take(reserve_blocks);
  pass();
  pass();
  EXPECT_EQ(budget(), blocks(card_blocks - reserve_blocks * 2));
}

}  // namespace
}  // namespace rmm_uvm

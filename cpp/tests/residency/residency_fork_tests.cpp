// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A process forks while the manager's thread is at it: the child goes on by itself.
#include "../support/blocks.hpp"
#include "../support/forked.hpp"
#include "../support/recording_driver.hpp"
#include "random_program.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace rmm_uvm {
namespace {

using namespace std::chrono_literals;
using tests::block_range;
using tests::blocks;
using tests::driver_call;
using tests::in_child;
using tests::random_program;
using tests::recording_driver;
using tests::slab_address;
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

TEST(ResidencyFork, ChildOfAForkInTheMiddleOfACallOfTheThreadFindsNoLockOfItTaken)
{
  thread_local bool asks = false;  // rather than being the manager's thread
  auto const driver      = std::make_shared<recording_driver>();
  std::mutex lock;
  std::atomic<bool> calling{false};
  driver->on_call = [&](driver_call const&) {
    if (asks) { return; }
    std::lock_guard const held{lock};
    calling = true;
    std::this_thread::sleep_for(1ms);  // what a call takes
    calling = false;
  };
  residency_ledger ledger;
  ledger.add_slab({slab_address, blocks(32)});
  auto settings      = residency_settings::of(blocks(8));
  settings.low_bytes = blocks(2);
  residency_manager manager{driver, ledger, settings};
  std::atomic<bool> ending{false};
  std::thread program{[&] {
    asks = true;
    while (!ending) {  // what died is dropped by the thread, down to the low watermark
      for (auto const part : {block_range(slab_address, 0, 6), block_range(slab_address, 8, 4)}) {
        manager.on_allocate(part, nullptr);
        manager.on_free(part, nullptr);
      }
    }
  }};
  bool well = true;
  for (int round = 0; round < 20; ++round) {
    while (!calling) {
      std::this_thread::yield();
    }
    well = in_child([&] { return lock.try_lock(); }) && well;
  }
  ending = true;
  program.join();
  EXPECT_TRUE(well);
}

TEST(ResidencyFork, ChildKeepsTheBudgetByItself)
{
  small_budget memory{eviction_policy::lru, true};
  for (std::uint64_t round = 0; round < 20; ++round) {
    random_program program{memory, round};
    bool well = true;
    EXPECT_EQ(
      program.run(6, [&] { well = in_child([&] { return goes_on(memory, round); }) && well; }), 0U);
    ASSERT_TRUE(well) << "round " << round;
  }
  EXPECT_TRUE(memory.manager->settings().background);  // the parent's thread goes on
  memory.manager->flush();
  EXPECT_EQ(memory.manager->statistics().failed_calls, 0U);
}

TEST(ResidencyFork, ChildForksInItsTurnAlsoOnceTheBudgetIsGone)
{
  auto ledger   = std::make_unique<residency_ledger>();
  auto settings = residency_settings::of(blocks(8));
  // Never destroyed, as in a child: see `budgeted_enactor`.
  auto* const manager =
    new residency_manager{std::make_shared<recording_driver>(), *ledger, settings};
  EXPECT_TRUE(in_child([&] {
    ledger.reset();
    return in_child([] { return true; });
  }));
  delete manager;
}

}  // namespace
}  // namespace rmm_uvm

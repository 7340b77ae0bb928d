// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is used last leaves before its room is needed, where that is foreseen: no more, no earlier.
#include "residency_manager_fixture.hpp"

namespace rmm_uvm {
namespace {

using tests::ResidencyManager;

/** @brief A step of training: state that is used at its end, and memory that comes and goes. */
class EarlyRoom : public ResidencyManager {
 protected:
  static constexpr std::size_t state_blocks    = 4;
  static constexpr std::size_t working_blocks  = 7;
  static constexpr std::size_t blocks_too_many = state_blocks + working_blocks - budget_blocks;

  void begin(eviction_policy policy)
  {
    make(policy);
    allocate(0, state_blocks);
  }
  void fill(std::size_t from = 0)
  {
    for (auto number = from; number < working_blocks; ++number) {
      allocate(state_blocks + number, 1);
    }
  }
  void finish()
  {
    for (std::size_t number = working_blocks; number-- > 0;) {
      touch(state_blocks + number, 1);
      free(state_blocks + number, 1);
    }
    touch(0, state_blocks);
  }
  void learn()
  {
    for (int step = 0; step < 6; ++step) {
      fill();
      finish();
    }
    manager->run_pending();
    static_cast<void>(moves());
  }
  [[nodiscard]] std::size_t blocks_to_host()
  {
    std::size_t bytes = 0;
    for (auto const& call : moves()) {
      if (call.device_id != location::host_id || call.name == "discard") { continue; }
      for (auto const& range : call.ranges) {
        bytes += range.bytes;
      }
    }
    return bytes / va_block_bytes;
  }
};

TEST_F(EarlyRoom, WhatIsUsedLastLeavesBeforeItsRoomIsNeededAndNoMoreThanThat)
{
  begin(eviction_policy::repeat);
  learn();
  ASSERT_TRUE(manager->statistics().foresees);
  auto const ahead        = manager->statistics().fetched_ahead_bytes;
  std::size_t by_thread   = 0;
  std::size_t by_requests = 0;
  for (std::size_t number = 0; number < working_blocks; ++number) {
    allocate(state_blocks + number, 1);
    by_requests += blocks_to_host();
    manager->run_pending();
    by_thread += blocks_to_host();
    // All at once: who comes next finds room.
    EXPECT_TRUE(by_thread == 0 || by_thread + by_requests == blocks_too_many) << number;
  }
  EXPECT_EQ(by_thread + by_requests, blocks_too_many);
  EXPECT_LE(by_requests, 1U);
  EXPECT_EQ(manager->statistics().fetched_ahead_bytes, ahead);  // that would take the room again
  finish();
  EXPECT_EQ(blocks_to_host(), 0U);
}

/** @brief A step with a table that nobody uses, and much memory at its end. */
class EarlyTable : public EarlyRoom {
 protected:
  static constexpr std::size_t table = 20;
  static constexpr std::size_t wide  = 30;

  /** @return blocks of the table that left when the thread looked, in the last of six steps */
  [[nodiscard]] std::size_t left_early(std::size_t looks_after, bool freed_at_once)
  {
    std::size_t left = 0;
    for (int step = 0; step < 6; ++step) {
      left = 0;
      allocate(table, 3);
      if (freed_at_once) { free(table, 3); }
      for (std::size_t use = 1; use <= 40; ++use) {
        touch(use % state_blocks, 1);
        if (use == looks_after) { left = looked(); }
      }
      allocate(wide, 4);  // beside the state, which every step uses
      free(wide, 4);
      if (!freed_at_once) { free(table, 3); }
    }
    return left;
  }

 private:
  [[nodiscard]] std::size_t looked()
  {
    static_cast<void>(moves());
    manager->run_pending();
    std::size_t bytes = 0;
    for (auto const& call : moves()) {
      if (call.device_id != location::host_id || call.name == "discard") { continue; }
      for (auto const& range : call.ranges) {
        if (at(table, 3).covers(range)) { bytes += range.bytes; }
      }
    }
    return bytes / va_block_bytes;
  }
};

TEST_F(EarlyTable, WhatIsFreedAfterItsRoomIsNeededLeavesOnceItLayUnusedForLong)
{
  begin(eviction_policy::repeat);
  EXPECT_GT(left_early(30, false), 0U);  // 11 uses before the room is needed
}

TEST_F(EarlyTable, WhatIsFreedAfterItsRoomIsNeededStaysWhileKernelsMayUseIt)
{
  begin(eviction_policy::repeat);
  EXPECT_EQ(left_early(10, false), 0U);
}

TEST_F(EarlyTable, DeadBlocksThatAreCopiedDoNotLeaveEarly)
{
  discard_dead = false;
  begin(eviction_policy::repeat);
  EXPECT_EQ(left_early(39, true), 0U);
}

TEST_F(EarlyRoom, NothingLeavesEarlyWhereNothingIsForeseen)
{
  begin(eviction_policy::lru);
  learn();
  for (std::size_t number = 0; number < working_blocks; ++number) {
    allocate(state_blocks + number, 1);
    auto const by_request = blocks_to_host();
    manager->run_pending();
    EXPECT_LT(blocks_to_host() + by_request, blocks_too_many) << number;
  }
}

TEST_F(EarlyRoom, NothingLeavesEarlyThatIsUsedBeforeItsRoomIsNeeded)
{
  begin(eviction_policy::repeat);
  auto const step = [this] {
    for (std::size_t number = 0; number < working_blocks; ++number) {
      allocate(state_blocks + number, 1);
      touch(0, state_blocks);  // with every part: to go and come would be twice the way
    }
    for (std::size_t number = working_blocks; number-- > 0;) {
      free(state_blocks + number, 1);
    }
  };
  for (int round = 0; round < 6; ++round) {
    step();
  }
  manager->run_pending();
  static_cast<void>(moves());
  for (std::size_t number = 0; number < 3; ++number) {
    allocate(state_blocks + number, 1);
    touch(0, state_blocks);
    manager->run_pending();
    for (auto const& call : moves()) {
      if (call.name != "prefetch" || call.device_id != location::host_id) { continue; }
      EXPECT_GE(call.ranges[0].address, at(state_blocks).address);
    }
  }
}

}  // namespace
}  // namespace rmm_uvm

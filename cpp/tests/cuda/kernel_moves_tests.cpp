// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Windows of the kernel driver's event queue, on a kernel driver that the tests play.
#include "../support/counters_machine.hpp"

#include <rmm_uvm/cuda/kernel_moves.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using tests::counters_machine;
using tests::fake_system;
using uvm_tools::migration_entry;

constexpr int moves_space            = counters_machine::space;
constexpr std::uintptr_t moves_base  = std::uintptr_t{1} << 40U;
constexpr std::uint8_t by_prefetcher = 3;

[[nodiscard]] opened_move_queue open_moves_of(counters_machine& here)
{
  return kernel_moves::open(here.driver, here.system);
}

/** @brief The GPU of the machine faults some pages in. */
void fault_in(counters_machine& here, std::uintptr_t address, std::uint64_t bytes)
{
  here.system->enter(moves_space, {0, 2, 0, 1, 0, address, bytes, {}});
}

TEST(KernelMoves, TellPagesWithDirectionAndCauseWhileAWindowIsOpen)
{
  counters_machine here;
  auto const opened = open_moves_of(here);
  ASSERT_TRUE(opened.queue) << opened.opened.reason;
  EXPECT_EQ(here.driver.allocations, 0U);
  fault_in(here, moves_base, 4096);  // before
  ASSERT_TRUE(opened.queue->begin().available);
  fault_in(here, moves_base + 4096, 65536);
  here.system->enter(moves_space, {0, 4, 1, 0, 0, moves_base, 4096, {}});
  here.system->enter(moves_space, {0, 2, 0, 2, 0, moves_base, 4096, {}});  // another GPU's
  here.system->enter(moves_space + 1, {0, 2, 0, 1, 0, moves_base, 4096, {}});
  std::vector<seen_move> moves;
  EXPECT_EQ(opened.queue->end(moves), 0U);
  fault_in(here, moves_base, 4096);  // after
  ASSERT_EQ(moves.size(), 2U);
  EXPECT_EQ(moves[0].within, (memory_range{moves_base + 4096, 65536}));
  EXPECT_EQ(moves[0].bytes, 65536U);
  EXPECT_TRUE(moves[0].to_device);
  EXPECT_EQ(moves[0].cause, migration_cause::coherence);
  EXPECT_FALSE(moves[1].to_device);
  EXPECT_EQ(moves[1].cause, migration_cause::eviction);
  ASSERT_TRUE(opened.queue->begin().available);
  moves.clear();
  EXPECT_EQ(opened.queue->end(moves), 0U);
  EXPECT_TRUE(moves.empty());
}

TEST(KernelMoves, PastTheEndOfTheQueueAreCountedAsLostAndTheRestIsRight)
{
  counters_machine here;
  auto const opened = open_moves_of(here);
  ASSERT_TRUE(opened.queue);
  std::vector<seen_move> moves;
  for (int round = 0; round < 3; ++round) {  // wherever the queue begins
    ASSERT_TRUE(opened.queue->begin().available);
    for (std::size_t i = 0; i < move_queue::most_moves + 9; ++i) {
      fault_in(here, moves_base + i % 512 * 4096, 4096);
    }
    moves.clear();
    EXPECT_EQ(opened.queue->end(moves), 10U);  // one place stays free
    EXPECT_EQ(moves.size(), move_queue::most_moves - 1);
  }
}

TEST(KernelMoves, ThatMakeNoSenseAreLost)
{
  counters_machine here;
  auto const opened = open_moves_of(here);
  ASSERT_TRUE(opened.queue);
  ASSERT_TRUE(opened.queue->begin().available);
  fault_in(here, moves_base + 1, 4096);
  fault_in(here, moves_base, 0);
  fault_in(here, moves_base, 100);
  fault_in(here, moves_base + 4096, va_block_bytes);
  fault_in(here, moves_base, std::uint64_t{1} << 63U);
  here.system->enter(moves_space, {0, 200, 0, 1, 0, moves_base, 4096, {}});  // a new cause
  std::vector<seen_move> moves;
  EXPECT_EQ(opened.queue->end(moves), 5U);
  ASSERT_EQ(moves.size(), 1U);
  EXPECT_EQ(moves[0].cause, migration_cause::unknown);
}

TEST(KernelMoves, OfADriverWithOtherEntriesAreNotUsed)
{
  for (std::size_t const bytes : {56U, 72U, 96U, 128U}) {
    counters_machine here;
    here.system->entry_bytes = bytes;
    auto const opened        = open_moves_of(here);
    EXPECT_FALSE(opened.queue) << bytes;
    EXPECT_NE(opened.opened.reason.find("unknown layout"), std::string::npos);
  }
}

TEST(KernelMoves, ThatTheSelfTestDoesNotSeeAreNotUsed)
{
  counters_machine here;
  here.system->enters = false;
  auto const opened   = open_moves_of(here);
  EXPECT_FALSE(opened.queue);
  EXPECT_NE(opened.opened.reason.find("saw 0 of them"), std::string::npos);
  EXPECT_EQ(here.system->held(), 0U);
  EXPECT_EQ(here.driver.allocations, 0U);
}

TEST(KernelMoves, WhoseSelfTestCannotMoveMemoryAreNotUsed)
{
  counters_machine here;
  here.driver.moves = {status_code::driver_error, 1, "prefetch"};
  EXPECT_NE(open_moves_of(here).opened.reason.find("could not move"), std::string::npos);
  EXPECT_EQ(here.driver.allocations, 0U);
}

TEST(KernelMoves, ThatAreRefusedSayWhy)
{
  counters_machine queue;
  queue.system->queue_status = 0x56;
  EXPECT_EQ(open_moves_of(queue).opened.reason,
            "the UVM kernel driver refused a queue of events (status 86)");
  counters_machine events;
  events.system->events_status = 0x1B;
  EXPECT_EQ(open_moves_of(events).opened.reason,
            "the UVM kernel driver refused to tell migrations (status 27)");
  counters_machine closed;
  closed.system->answers["open"] = EACCES;
  EXPECT_NE(open_moves_of(closed).opened.reason.find("may not be opened by this user"),
            std::string::npos);
}

TEST(KernelMoves, ThatAreRefusedLaterSayWhy)
{
  counters_machine here;
  auto const opened = open_moves_of(here);
  ASSERT_TRUE(opened.queue);
  here.system->events_status = 0x1B;
  EXPECT_NE(opened.queue->begin().reason.find("refused to tell migrations"), std::string::npos);
}

TEST(KernelMoves, InAForkedChildTellNothingAndLeaveTheParentAlone)
{
  counters_machine here;
  auto const opened = open_moves_of(here);
  ASSERT_TRUE(opened.queue);
  ASSERT_TRUE(opened.queue->begin().available);
  here.system->pid = fake_system::own_pid + 1;
  std::vector<seen_move> moves;
  fault_in(here, moves_base, 4096);
  EXPECT_EQ(opened.queue->end(moves), 0U);
  EXPECT_TRUE(moves.empty());
  EXPECT_NE(opened.queue->begin().reason.find("forked"), std::string::npos);
  here.system->pid = fake_system::own_pid;
  EXPECT_EQ(opened.queue->end(moves), 0U);
  EXPECT_EQ(moves.size(), 1U);
}

TEST(KernelMoves, WhicheverCallFailsAreMissingForAReasonAndLeaveNothingBehind)
{
  counters_machine healthy;
  ASSERT_TRUE(open_moves_of(healthy).queue);
  for (int call = 1; call <= healthy.system->calls; ++call) {
    counters_machine here;
    here.system->errors[call] = EIO;
    {
      auto const opened = open_moves_of(here);
      EXPECT_EQ(opened.queue == nullptr, !opened.opened.reason.empty()) << call;
    }
    EXPECT_EQ(here.system->held(), 0U) << call;
    EXPECT_EQ(here.driver.allocations, 0U) << call;
  }
}

}  // namespace
}  // namespace rmm_uvm::cuda

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The classes that keep a budget, each without the others.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"

#include <rmm_uvm/residency/budget/block_mover.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/leaving_order.hpp>
#include <rmm_uvm/residency/budget/moved_account.hpp>
#include <rmm_uvm/residency/budget/presence.hpp>
#include <rmm_uvm/residency/budget/stream_marks.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>
#include <rmm_uvm/residency/budget/use_learner.hpp>
#include <rmm_uvm/residency/budget/waited_time.hpp>
#include <rmm_uvm/residency/budget/work_signal.hpp>
#include <rmm_uvm/residency/leaving_search.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::recording_driver;
using tests::slab_address;

TEST(UseClock, TurnsBackByHalfOfItsRangeAndMovesMomentsWithIt)
{
  use_clock clock{8};
  for (int tick = 0; tick < 8; ++tick) {
    ASSERT_FALSE(clock.is_at_its_end());
    clock.tick();
  }
  ASSERT_TRUE(clock.is_at_its_end());
  auto const shift = clock.turn_back();
  EXPECT_EQ(clock.now(), 4U);
  use_tick late    = 7;
  use_tick early   = 2;
  use_tick never   = never_used;
  use_tick unknown = unknown_use;
  for (auto* each : {&late, &early, &never, &unknown}) {
    shift(*each);
  }
  EXPECT_EQ(late, 3U);
  EXPECT_EQ(early, 1U);  // all that is longer ago is as long ago
  EXPECT_EQ(never, never_used);
  EXPECT_EQ(unknown, unknown_use);
}

TEST(WaitedTime, CountsOnceWhatRequestsWaitAtTheSameTime)
{
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds while_{10};
  waited_time waited;
  auto const begun = steady_clock::now();
  {
    waited_time::scope const not_counted{waited, false};
    std::optional<waited_time::scope> first, second;
    first.emplace(waited, true);
    second.emplace(waited, true);
    EXPECT_EQ(waited.ns(), 0U);
    std::this_thread::sleep_for(while_);
    first.reset();  // what it waited is told by now
    auto const of_first = std::chrono::nanoseconds{waited.ns()};
    EXPECT_GE(of_first, while_);
    std::this_thread::sleep_for(while_);
    second.reset();
    EXPECT_GE(std::chrono::nanoseconds{waited.ns()}, of_first + while_);
    EXPECT_LE(std::chrono::nanoseconds{waited.ns()}, steady_clock::now() - begun);
  }
  auto const both = waited.ns();
  std::this_thread::sleep_for(while_);  // nobody waits
  EXPECT_EQ(waited.ns(), both);
}

TEST(WorkSignal, IsKeptUntilItIsTakenAndNotAtAllWhereNobodyHears)
{
  work_signal heard{true};
  heard.call();
  EXPECT_TRUE(heard.called());
  heard.take();
  EXPECT_FALSE(heard.called());
  heard.call();
  heard.is_not_heard();
  EXPECT_FALSE(heard.called());
  heard.call();
  EXPECT_FALSE(heard.called());
}

class BudgetParts : public testing::Test {
 protected:
  BudgetParts() { blocks_of.add_slab({slab_address, blocks(16)}); }
  [[nodiscard]] static memory_range at(std::size_t first, std::size_t count = 1)
  {
    return block_range(slab_address, first, count);
  }
  [[nodiscard]] block_record record(std::size_t number)
  {
    ledger_view view{blocks_of};
    block_record found;
    view.each(at(number), [&](block_record const& block, memory_range) { found = block; });
    return found;
  }
  [[nodiscard]] residency_statistics told() const
  {
    residency_statistics all;
    ledger.tell(all);
    moved.tell(all);
    present.tell(all);
    uses.tell(all);
    return all;
  }

  residency_ledger blocks_of;
  recording_driver driver;
  budget_ledger ledger{blocks_of, blocks(8), blocks(7)};
  use_clock clock{1U << 20U};
  moved_account moved{driver.counters(), true};
  presence present{driver.counters(), ledger, clock, moved};
  stream_marks marks{driver, ledger, clock, present, moved};
  live_block_watch watch;
  last_announced announced;
  use_learner uses{eviction_policy::lru, clock, present, marks, watch, announced};
  stream_handle const stream{reinterpret_cast<stream_handle>(std::uintptr_t{0x1234})};
};

TEST_F(BudgetParts, LedgerTellsOnlyWhatThereIsRoomFor)
{
  ledger.comes(blocks(3));
  EXPECT_EQ(told().resident_bytes, 0U);
  EXPECT_EQ(ledger.resident_bytes(), blocks(3));
  ledger.has_room(blocks(3));
  EXPECT_EQ(told().resident_bytes, blocks(3));
  EXPECT_EQ(told().peak_resident_bytes, blocks(3));
  ledger.begins_to_leave(blocks(1));
  EXPECT_EQ(ledger.staying_bytes(), blocks(2));
  ledger.left(blocks(1));
  ledger.ends_to_leave(blocks(1));
  EXPECT_EQ(ledger.staying_bytes(), blocks(2));
  EXPECT_EQ(told().peak_resident_bytes, blocks(3));
}

TEST_F(BudgetParts, LedgerIsBeyondItsBudgetByWhatNobodyMakesRoomFor)
{
  ledger.comes(blocks(10));
  EXPECT_EQ(ledger.beyond_budget_bytes(), 0U);  // a request is at it
  ledger.has_room(blocks(10));
  EXPECT_EQ(ledger.beyond_budget_bytes(), blocks(2));
  ledger.begins_to_leave(blocks(2));
  EXPECT_EQ(ledger.beyond_budget_bytes(), 0U);
}

TEST_F(BudgetParts, LedgersPeakLeavesOutWhatAnotherRequestMakesRoomFor)
{
  ledger.comes(blocks(6));
  ledger.comes(blocks(1));
  ledger.has_room(blocks(1));
  EXPECT_EQ(told().peak_resident_bytes, blocks(1));
}

TEST_F(BudgetParts, LastAnnouncedAreWhatEachStreamWasToldLast)
{
  auto const touched_at = [](use_tick tick) {
    block_record block;
    block.touched = tick;
    return block;
  };
  announced.note(stream, 3, 5);
  announced.note(nullptr, 6, 6);
  EXPECT_FALSE(announced.names(touched_at(never_used)));
  EXPECT_FALSE(announced.names(touched_at(2)));
  EXPECT_TRUE(announced.names(touched_at(3)));
  EXPECT_TRUE(announced.names(touched_at(6)));
  announced.note(stream, 8, 9);
  EXPECT_FALSE(announced.names(touched_at(4)));
  EXPECT_TRUE(announced.names(touched_at(6)));
  for (std::uintptr_t other = 1; other <= last_announced::streams; ++other) {
    announced.note(reinterpret_cast<stream_handle>(other),
                   static_cast<use_tick>(20 + other),
                   static_cast<use_tick>(20 + other));
  }
  EXPECT_FALSE(announced.names(touched_at(6)));  // of more streams than that
  announced.turn_back(tick_shift{10});
  EXPECT_TRUE(announced.names(touched_at(11)));
  EXPECT_FALSE(announced.names(touched_at(21)));
}

TEST_F(BudgetParts, LedgerCountsABlockAsPinnedOnce)
{
  ledger_view view{blocks_of};
  ledger.pin(view, at(0, 2));
  ledger.pin(view, at(1, 2));
  EXPECT_EQ(ledger.pinned_bytes(), blocks(3));
  ledger.unpin(view, at(0, 2), 1);
  EXPECT_EQ(ledger.pinned_bytes(), blocks(2));
  ledger.unpin(view, at(1, 2), 1);
  ledger.unpin(view, at(1, 2), 1);
  EXPECT_EQ(ledger.pinned_bytes(), 0U);
}

TEST_F(BudgetParts, LedgerHasWhoeverWantsABusyBlockWait)
{
  ledger_view view{blocks_of};
  view.each(at(2), [](block_record& block, memory_range) { block.busy = true; });
  std::atomic<bool> ended{false};
  std::thread other{[&] {
    ledger_view theirs{blocks_of};
    auto const wanted = at(0, 4);
    ledger.wait_until_free(theirs, {&wanted, 1});
    ended = true;
  }};
  view.unlock();
  std::this_thread::yield();
  EXPECT_FALSE(ended);
  view.relock();
  view.each(at(2), [](block_record& block, memory_range) { block.busy = false; });
  ledger.tell_change();
  view.unlock();
  other.join();
  EXPECT_TRUE(ended);
}

TEST_F(BudgetParts, AccountEndsAnEpochForBytesThatNobodyAskedForAndNoOthers)
{
  auto const before = moved.epoch();
  moved.ask_to_host(blocks(2));
  driver.counted.device_to_host_bytes += blocks(2);
  EXPECT_EQ(moved.epoch(), before);
  driver.counted.device_to_host_bytes += 1;
  EXPECT_EQ(moved.epoch(), before + 1);
  EXPECT_EQ(moved.epoch(), before + 1);
  moved.ask_to_host(blocks(1));
  moved.was_not_asked(blocks(1));
  driver.counted.device_to_host_bytes += blocks(1);
  EXPECT_EQ(moved.epoch(), before + 2);
}

TEST_F(BudgetParts, PresenceIsCertainUntilSomethingIsSentAwayOrLeavesByItself)
{
  budget_ledger roomy{blocks_of, blocks(16), blocks(15)};
  presence certain{driver.counters(), roomy, clock, moved};
  EXPECT_TRUE(certain.all_present());
  EXPECT_FALSE(present.all_present());  // sixteen blocks of slabs, and room for eight
  driver.counted.device_to_host_bytes += 1;
  EXPECT_FALSE(certain.all_present());
  presence later{driver.counters(), roomy, clock, moved};
  EXPECT_TRUE(later.all_present());
  later.note_sent_away();
  EXPECT_FALSE(later.all_present());
}

TEST_F(BudgetParts, WhatMayLeaveIsFoundThoughItsUsesWerePassedOver)
{
  ledger_view view{blocks_of};
  clock.tick();
  view.change(at(0), clock.now(), [this](block_record& block, memory_range) {
    block.place           = block_place::device;
    block.on_device_as_of = moved.epoch();
    block.live_bytes      = va_block_bytes;
    block.touched         = clock.now();
  });
  announced.note(stream, clock.now(), clock.now());
  auto const blocks_that_leave = [&] {
    leaving_order const order{.now              = clock.now(),
                              .spares_announced = true,
                              .announced_from   = announced.earliest(),
                              .announced        = announced};
    std::size_t found = 0;
    leaving_search{view, clock.now()}.highest_first(
      [&](leaving_bounds const& bounds) { return order.of(bounds); },
      [&](block_record const& block, memory_range) { return order.of(block, false); },
      [&](viewed_block const&) { return ++found == 0; });
    return found;
  };
  EXPECT_EQ(blocks_that_leave(), 0U);  // it was announced
  absent_blocks absent;
  ASSERT_TRUE(present.confirm(view, absent));
  for (int use = 0; use < 4; ++use) {
    clock.tick();
  }
  present.end(view);  // now it counts as used as lately as it was then: in another use
  EXPECT_EQ(blocks_that_leave(), 1U);
}

TEST_F(BudgetParts, MarksTellWhatIsDoneOnceTheDriverHasPassedThem)
{
  for (int use = 0; use < 3; ++use) {
    clock.tick();
  }
  driver.marks_passed = false;
  marks.mark(4, blocks(2), stream);
  marks.look();
  EXPECT_EQ(marks.idle_until(), never_used);
  EXPECT_TRUE(marks.any_outstanding());
  driver.marks_passed = true;
  marks.look();
  EXPECT_EQ(marks.idle_until(), 3U);
  EXPECT_FALSE(marks.any_outstanding());
}

TEST_F(BudgetParts, LearnerKnowsWhatLivesInABlockAndWhenItWasUsedLast)
{
  auto const whole = at(0, 2);
  memory_range const half{whole.address, blocks(1) / 2};
  {
    ledger_view view{blocks_of};
    uses.hand_out(view, whole);
    uses.learn(view, {use_kind::allocate, whole, whole.address});
    uses.learn(view, {use_kind::touch, half, whole.address});
  }
  EXPECT_EQ(record(0).live_bytes, blocks(1));
  EXPECT_EQ(record(0).allocated, 1U);
  EXPECT_EQ(record(0).touched, 2U);
  EXPECT_EQ(record(1).touched, never_used);
  {
    ledger_view view{blocks_of};
    uses.forget(view, half, {true});
  }
  EXPECT_FALSE(record(0).dead());
  EXPECT_EQ(record(0).freed, 1U);
  {
    ledger_view view{blocks_of};
    uses.forget(view, {half.end(), blocks(1) / 2}, {false});
  }
  EXPECT_TRUE(record(0).dead());
  EXPECT_TRUE(record(0).unfenced);  // never to be discarded
  EXPECT_EQ(told().unfenced_frees, 1U);
}

TEST_F(BudgetParts, FirstFenceInTheDefaultStreamIsOneForAllFreesThereBefore)
{
  struct earlier {
    bool in_default;          // without a fence
    bool adopted;             // the block was there before the budget
    std::uint64_t meanwhile;  // frees without a fence after the stream of frees began to wait
    bool dropped;             // may be, after the fence
  };
  std::size_t next = 0;
  for (auto const& is : {earlier{true, false, 0, true},
                         earlier{true, false, 1, false},
                         earlier{false, false, 0, false},
                         earlier{true, true, 0, false}}) {
    use_learner learner{eviction_policy::lru, clock, present, marks, watch, announced};
    auto const first = at(next, 1);
    auto const other = at(next + 1, 1);
    next += 2;
    ledger_view view{blocks_of};
    if (is.adopted) {
      view.each(first, [](block_record& block, memory_range whole) { block.adopt(whole.bytes); });
    }
    for (auto const& each : {first, other}) {
      learner.hand_out(view, each);
      learner.learn(view, {use_kind::allocate, each, each.address});
    }
    learner.forget(view, {first.address, first.bytes / 2}, {false, is.in_default});
    memory_range const rest{first.address + first.bytes / 2, first.bytes / 2};
    learner.forget(view, rest, {true, false, learner.unfenced_frees()});  // in another stream
    auto const unfenced = [&] {
      bool found = false;
      view.each(first, [&](block_record const& block, memory_range) { found = block.unfenced; });
      return found;
    };
    EXPECT_TRUE(unfenced());
    learner.forget(view, other, {true, true, learner.unfenced_frees() - is.meanwhile});
    EXPECT_EQ(unfenced(), !is.dropped);
  }
}

TEST_F(BudgetParts, MoverWaitsForFreesOnlyWhereTheyMayBeUnderWay)
{
  residency_settings const settings{};
  block_mover mover{driver, settings, ledger, nullptr};
  auto const range = at(0, 2);
  EXPECT_TRUE(mover.discard({&range, 1}, true).ok());
  auto const without = driver.take_calls("synchronize").size();
  EXPECT_TRUE(mover.discard({&range, 1}, false).ok());
  EXPECT_EQ(driver.take_calls("synchronize").size(), without + 1);
}

}  // namespace
}  // namespace rmm_uvm

// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Whose memory moved, with an interpreter that the test writes into memory.
#include "../support/fake_interpreter.hpp"

#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/monitor/line_account.hpp>

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using tests::address_of;
using tests::fake_interpreter;
using tests::words;

// Of the thread that runs the test.
fake_interpreter* now = nullptr;

std::uintptr_t state_now() noexcept { return now == nullptr ? 0 : now->state(); }

bool describe(code_place place, code_line& line)
{
  line = {"file " + std::to_string(place.contents), "f", static_cast<int>(place.instruction)};
  return true;
}

class LineAccount : public testing::Test {
 protected:
  LineAccount() { now = &python; }
  ~LineAccount() override { now = nullptr; }

  void allocate(std::uintptr_t address, std::size_t bytes, std::size_t instruction)
  {
    python.at(0, instruction);
    account.allocated(0, {address, bytes}, nullptr);
  }
  void free(std::uintptr_t address, std::size_t bytes)
  {
    account.freed(0, {address, bytes}, nullptr);
  }
  /** @brief The account of what was allocated at an instruction of the innermost frame. */
  path_account at(int instruction)
  {
    auto const told = account.report();
    for (auto const& path : told.paths) {
      if (!path.lines.empty() && told.lines[path.lines[0]].line == instruction) { return path; }
    }
    return {};
  }

  fake_interpreter python{true};
  line_account account{{state_now, describe, python.layout().value()}};
};

TEST(PythonFrames, AreFoundWhereverTheyAre)
{
  for (bool const by_holder : {true, false}) {
    fake_interpreter python{by_holder};
    auto const layout = python.layout();
    ASSERT_TRUE(layout);
    std::array<code_place, 8> read{};
    ASSERT_EQ(read_frames(python.state(), *layout, read), 3U);
    EXPECT_EQ(read[2], python.known()[2].place);
    // No further than there is room.
    EXPECT_EQ(read_frames(python.state(), *layout, std::span{read}.first(2)), 2U);
    EXPECT_EQ(read_frames(0, *layout, read), 0U);
  }
}

TEST(PythonFrames, AreNotReadWhereWhatIsKnownSaysOtherwise)
{
  fake_interpreter python{false};
  auto known = python.known();
  known[1].place.instruction += 2;
  EXPECT_FALSE(find_layout(python.state(), known, python.facts()));
  EXPECT_FALSE(find_layout(python.state(), std::span{known}.first(1), python.facts()));
  EXPECT_FALSE(find_layout(0, python.known(), python.facts()));
  std::array<std::uintptr_t, 32> other{};
  EXPECT_FALSE(find_layout(address_of(other), python.known(), python.facts()));
}

TEST(PythonFrames, WhatTheInterpreterPutsBetweenIsPassedOver)
{
  fake_interpreter python{false};
  auto const layout = python.layout().value();
  python.code(1)[1] = 0;  // of another type
  std::array<code_place, 8> read{};
  EXPECT_EQ(read_frames(python.state(), layout, read), 2U);
}

TEST(PythonFrames, FramesOfTheInterpretersOwnHaveItsCode)
{
  fake_interpreter python{true};
  python.put_own_frames();
  auto const layout = python.layout();
  ASSERT_TRUE(layout);
  std::array<code_place, 8> read{};
  ASSERT_EQ(read_frames(python.state(), *layout, read), 3U);
  EXPECT_EQ(read[2], python.known()[2].place);
}

TEST_F(LineAccount, WhatMovesIsOfTheLineThatAllocatedIt)
{
  allocate(1000, 100, 4);
  allocate(1100, 300, 6);
  account.moved({1000, 400}, 400, traffic::evicted);
  account.moved({1050, 100}, 100, traffic::brought);
  account.moved({1100, 10}, 10, traffic::faulted);
  account.moved({1399, 9}, 9, traffic::read_back);
  EXPECT_EQ(at(4).moved.evicted, 100U);
  EXPECT_EQ(at(6).moved.evicted, 300U);
  EXPECT_EQ(at(4).moved.brought, 50U);
  EXPECT_EQ(at(6).moved.brought, 50U);
  EXPECT_EQ(at(6).moved.faulted, 10U);
  EXPECT_EQ(at(6).moved.read_back, 1U);
  auto const told = account.report();
  ASSERT_EQ(told.objects.size(), 2U);
  EXPECT_EQ(told.objects[0].number, 2U);
  EXPECT_EQ(told.objects[0].moved.copied(), 361U);
  EXPECT_EQ(told.paths[0].moved.copied(), 8U);  // behind the last allocation
}

TEST_F(LineAccount, WhatIsEstimatedIsOfTheOwnersOfWhatWasSeen)
{
  allocate(0, 100, 4);
  allocate(100, 100, 6);
  account.estimated({0, 400}, 4000, traffic::faulted);  // half of what was seen is nobody's
  EXPECT_EQ(at(4).moved.faulted, 1000U);
  EXPECT_EQ(at(6).moved.faulted, 1000U);
  EXPECT_EQ(account.report().paths[0].moved.faulted, 2000U);
  // More than there is of its memory: it came several times, but for what was new.
  EXPECT_EQ(at(4).moved.returned, 900U);
  account.estimated({150, 50}, 1, traffic::evicted);
  EXPECT_EQ(at(6).moved.evicted, 1U);
  account.estimated({1000, 100}, 7, traffic::faulted);
  account.estimated({0, 0}, 7, traffic::faulted);
  EXPECT_EQ(account.report().paths[0].moved.faulted, 2007U);
  EXPECT_EQ(at(4).moved.faulted + at(6).moved.faulted, 2000U);
}

TEST_F(LineAccount, LargeEstimatesAreExact)
{
  constexpr auto pebibyte = std::uint64_t{1} << 50U;
  allocate(0, 3 << 20U, 4);
  allocate(3 << 20U, 1 << 20U, 6);
  account.estimated({0, 4 << 20U}, 4 * pebibyte, traffic::faulted);
  EXPECT_EQ(at(4).moved.faulted, 3 * pebibyte);
  EXPECT_EQ(at(6).moved.faulted, pebibyte);
}

TEST_F(LineAccount, BytesWithoutPagesAreShared)
{
  allocate(0, 100, 4);
  allocate(100, 300, 6);
  account.moved({0, 1000}, 41, traffic::brought);
  EXPECT_EQ(at(4).moved.brought + at(6).moved.brought, 41U);
  EXPECT_EQ(at(4).moved.brought, 10U);
  account.moved({5000, 1000}, 41, traffic::brought);
  EXPECT_EQ(account.report().paths[0].moved.brought, 41U);
}

TEST_F(LineAccount, NoOwnerHasMoreThanItsMemoryAndNothingIsLost)
{
  allocate(0, 100, 4);
  allocate(200, 300, 6);
  auto const nobodys = [&] { return account.report().paths[0].moved; };
  account.moved({0, 1000}, 1000, traffic::evicted);
  EXPECT_EQ(at(4).moved.evicted, 100U);
  EXPECT_EQ(at(6).moved.evicted, 300U);
  EXPECT_EQ(nobodys().evicted, 600U);
  account.moved({0, 1000}, 900, traffic::faulted);
  EXPECT_EQ(at(4).moved.faulted, 100U);
  EXPECT_EQ(at(6).moved.faulted, 300U);
  EXPECT_EQ(nobodys().faulted, 500U);
  account.moved({0, 300}, 150, traffic::read_back);
  EXPECT_EQ(at(4).moved.read_back, 75U);
  EXPECT_EQ(at(6).moved.read_back, 75U);
  EXPECT_EQ(nobodys().read_back, 0U);
}

TEST_F(LineAccount, WhatIsFreedStaysItsLinesUntilItIsHandedOutAgain)
{
  allocate(0, 400, 4);
  free(0, 400);
  account.moved({0, 400}, 400, traffic::dropped);
  EXPECT_EQ(at(4).moved.dropped, 400U);
  allocate(100, 100, 6);
  account.moved({0, 400}, 400, traffic::evicted);
  EXPECT_EQ(at(4).moved.evicted, 300U);
  EXPECT_EQ(at(6).moved.evicted, 100U);
  // A discard before the first use is of what was there before.
  account.moved({100, 100}, 100, traffic::dropped);
  EXPECT_EQ(at(6).moved.dropped, 0U);
}

TEST_F(LineAccount, LevelsFollowFrees)
{
  allocate(0, 100, 4);
  allocate(100, 100, 4);
  free(0, 100);
  free(0, 100);  // of nothing
  allocate(0, 50, 4);
  EXPECT_EQ(at(4).allocations, 3U);
  EXPECT_EQ(at(4).live_bytes, 150U);
  EXPECT_EQ(at(4).peak_bytes, 200U);
}

TEST_F(LineAccount, WhatANewAllocationIsMadeOfWasNotBroughtBack)
{
  allocate(0, 100, 4);
  account.moved({0, 60}, 60, traffic::asked);
  account.moved({60, 40}, 40, traffic::asked);
  EXPECT_EQ(at(4).moved.brought, 0U);
  account.moved({0, 100}, 100, traffic::asked);
  EXPECT_EQ(at(4).moved.brought, 100U);
}

TEST_F(LineAccount, WhatWasUsedIsNotNewAnyMore)
{
  // Each allocation is asked for after it was used in one way.
  std::array const ways{
    traffic::renewed, traffic::asked, traffic::faulted, traffic::evicted, traffic::read_back};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    allocate(100 * i, 100, 2 * i);
    account.moved({100 * i, 100}, 100, ways[i]);
    account.moved({100 * i, 100}, 100, traffic::asked);
    EXPECT_EQ(at(static_cast<int>(2 * i)).moved.brought, 100U) << i;
    EXPECT_EQ(at(static_cast<int>(2 * i)).moved.dropped, 0U) << i;
  }
  // What was discarded is not copied, live or not.
  account.moved({0, 100}, 100, traffic::dropped);
  account.moved({0, 100}, 100, traffic::asked);
  EXPECT_EQ(at(0).moved.brought, 100U);
  free(100, 100);
  account.moved({100, 100}, 100, traffic::renewed);
  EXPECT_EQ(at(2).moved.dropped, 100U);
  EXPECT_EQ(at(2).moved.brought, 100U);
}

TEST_F(LineAccount, WhatComesAfterItLeftHasReturned)
{
  allocate(0, 100, 4);
  account.moved({0, 100}, 100, traffic::faulted);  // what the host had written
  EXPECT_EQ(at(4).moved.returned, 0U);
  account.moved({0, 30}, 30, traffic::evicted);
  account.moved({0, 20}, 20, traffic::read_back);
  account.moved({0, 100}, 40, traffic::asked);
  account.moved({0, 100}, 60, traffic::asked);  // of these 10 had left, and the others are there
  EXPECT_EQ(at(4).moved.returned, 50U);
  account.moved({0, 10}, 10, traffic::brought);  // it must have left, though nobody was told
  EXPECT_EQ(at(4).moved.returned, 60U);
  // Part of what is new leaves, and comes back.
  allocate(1000, 100, 6);
  account.moved({1000, 100}, 10, traffic::evicted);
  account.moved({1000, 100}, 10, traffic::brought);
  EXPECT_EQ(at(6).moved.returned, 10U);
  account.moved({1000, 100}, 10, traffic::evicted);
  account.moved({1000, 100}, 100, traffic::dropped);
  account.moved({1000, 100}, 100, traffic::brought);  // nothing was left of it
  EXPECT_EQ(at(6).moved.returned, 10U);
  // So does half of what nobody was told of: it is no more new, and the rest is.
  allocate(2000, 100, 8);
  account.moved({2000, 50}, 50, traffic::evicted);
  account.moved({2000, 50}, 50, traffic::asked);
  EXPECT_EQ(at(8).moved.brought, 50U);
  EXPECT_EQ(at(8).moved.returned, 50U);
  account.moved({2050, 50}, 50, traffic::asked);
  EXPECT_EQ(at(8).moved.brought, 50U);
}

TEST_F(LineAccount, TheMostIsToldByWhenItWasAllocated)
{
  // Line 4 keeps everything, line 6 nothing; then line 8 needs much at once.
  for (std::size_t i = 0; i < 64; ++i) {
    allocate(1000 * i, 10, 4);
    allocate(1000 * i + 500, 10, 6);
    account.moved({1000 * i, 10}, 10, traffic::evicted);
    free(1000 * i + 500, 10);
  }
  allocate(1'000'000, 700, 8);
  allocate(2'000'000, 1, 10);  // makes no peak of its own
  free(0, 10);                 // when the most was over
  auto const told = account.report();
  EXPECT_EQ(told.peak_bytes, 640U + 700);  // one more is nearly the same
  // 64 times 30 bytes and 701 are eleven stretches of 256 bytes.
  ASSERT_EQ(told.last_stretch, 10U);
  EXPECT_EQ(told.peak_stretch, 7U);
  auto const sum = [](bytes_by_stretch const& each) {
    return std::accumulate(each.bytes.begin(), each.bytes.end(), std::uint64_t{0});
  };
  auto const kept = at(4);
  EXPECT_EQ(sum(kept.held_at_peak), 640U);
  EXPECT_EQ(sum(kept.allocated), 640U);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_NEAR(static_cast<double>(kept.held_at_peak.bytes[i]), 256.0 / 3, 10) << i;
  }
  EXPECT_EQ(sum(at(6).allocated), 640U);
  EXPECT_EQ(sum(at(6).held_at_peak), 10U);
  EXPECT_EQ(at(6).held_at_peak.bytes[0], 10U);
  EXPECT_EQ(at(8).held_at_peak.bytes[7], 700U);
  // At the run's peak, too, and so that all paths together have it.
  EXPECT_EQ(sum(kept.held_at_top), 640U);
  EXPECT_EQ(sum(at(6).held_at_top), 0U);
  EXPECT_EQ(at(8).held_at_top.bytes[7], 700U);
  EXPECT_EQ(sum(at(10).held_at_top), 0U);
}

TEST_F(LineAccount, AtTheRunsPeakEachPathHasWhatWasLiveThen)
{
  auto const sum = [](bytes_by_stretch const& each) {
    return std::accumulate(each.bytes.begin(), each.bytes.end(), std::uint64_t{0});
  };
  // One after the other, each with the same first: no two of them are there at once.
  allocate(0, 100, 4);
  for (int line = 6; line < 16; line += 2) {
    allocate(1000, 300, static_cast<std::size_t>(line));
    free(1000, 300);
  }
  free(0, 100);
  EXPECT_EQ(account.report().peak_bytes, 400U);
  EXPECT_EQ(sum(at(4).held_at_top), 100U);
  EXPECT_EQ(sum(at(6).held_at_top), 300U);
  EXPECT_EQ(sum(at(8).held_at_top), 0U);
  // A higher one takes its place.
  allocate(2000, 450, 8);
  EXPECT_EQ(account.report().peak_bytes, 450U);
  EXPECT_EQ(sum(at(4).held_at_top), 0U);
  EXPECT_EQ(sum(at(6).held_at_top), 0U);
  EXPECT_EQ(sum(at(8).held_at_top), 450U);
}

TEST_F(LineAccount, AThreadWithoutPythonHasNoLine)
{
  now = nullptr;
  account.allocated(0, {0, 100}, nullptr);
  account.moved({0, 100}, 100, traffic::evicted);
  auto const told = account.report();
  ASSERT_EQ(told.paths.size(), 1U);
  EXPECT_EQ(told.paths[0].allocations, 1U);
  EXPECT_EQ(told.paths[0].moved.evicted, 100U);
}

TEST_F(LineAccount, OtherCallersAreOtherPathsThroughTheSameLine)
{
  allocate(0, 100, 4);
  python.at(2, 40);
  allocate(100, 100, 4);
  auto const told = account.report();
  ASSERT_EQ(told.paths.size(), 3U);
  EXPECT_EQ(told.paths[1].lines[0], told.paths[2].lines[0]);
  EXPECT_NE(told.paths[1].lines[2], told.paths[2].lines[2]);
}

TEST_F(LineAccount, CodeIsKnownByWhatIsInItNotByItsAddress)
{
  allocate(0, 100, 4);
  auto const was    = python.code(0)[2];
  python.code(0)[2] = 0x9999;
  allocate(100, 100, 4);
  EXPECT_EQ(account.report().paths.size(), 3U);
  fake_interpreter copied{true};
  copied.code(0)[2] = was;
  copied.at(0, 4);
  now = &copied;
  account.allocated(0, {200, 100}, nullptr);
  EXPECT_EQ(account.report().paths.size(), 3U);
}

TEST_F(LineAccount, OnlyTheBusiestAllocationsAreKept)
{
  for (std::size_t i = 0; i < 2 * line_account::most_objects; ++i) {
    allocate(100 * i, 100, 4);
    account.moved({100 * i, i}, i, traffic::evicted);
    free(100 * i, 100);
  }
  auto const told = account.report();
  ASSERT_EQ(told.objects.size(), line_account::most_objects);
  EXPECT_EQ(told.objects[0].moved.evicted, 2 * line_account::most_objects - 1);
  EXPECT_FALSE(told.objects[0].live);
}

TEST_F(LineAccount, ClosedItIgnoresEverything)
{
  allocate(0, 100, 4);
  account.close();
  EXPECT_TRUE(account.finished());
  account.moved({0, 100}, 100, traffic::evicted);
  allocate(100, 100, 4);
  free(0, 100);
  EXPECT_EQ(at(4).allocations, 1U);
  EXPECT_EQ(at(4).live_bytes, 100U);
  EXPECT_EQ(at(4).moved.evicted, 0U);
}

TEST_F(LineAccount, ClosedItKeepsNoMoreThanItReports)
{
  auto const in_use = [] { return static_cast<double>(mallinfo2().uordblks); };
  auto const before = in_use();
  for (std::size_t i = 0; i < 50'000; ++i) {
    allocate(100 * i, 100, 4);
  }
  account.moved({200, 100}, 50, traffic::evicted);
  account.close();
  EXPECT_LT(in_use() - before, 1e5);
  auto const told = account.report();
  ASSERT_EQ(told.objects.size(), 1U);
  EXPECT_EQ(told.objects[0].number, 3U);
  EXPECT_TRUE(told.objects[0].live);
}

/** @brief Counts what it is told. */
class counting final : public memory_observer {
 public:
  int calls{0};
  void allocated(int, memory_range, stream_handle) noexcept override { ++calls; }
  void freed(int, memory_range, stream_handle) noexcept override { ++calls; }
  void touched(int, memory_range, bool, bool) noexcept override { ++calls; }
  void moved(memory_range, std::size_t, traffic) noexcept override { ++calls; }
  bool is_finished{false};
  [[nodiscard]] bool finished() const noexcept override { return is_finished; }
};

TEST(ObserverSlot, TellsAnAccountBesideAnObserver)
{
  observer_slot slot;
  auto const trace   = std::make_shared<counting>();
  auto const account = std::make_shared<counting>();
  auto const tell    = [&] {
    auto* const told = slot.get();
    if (told == nullptr) { return; }
    told->allocated(0, {0, 1}, nullptr);
    told->moved({0, 1}, 1, traffic::evicted);
    told->touched(0, {0, 1}, true, false);
    told->freed(0, {0, 1}, nullptr);
  };
  slot.set_account(account);
  EXPECT_FALSE(slot.taken());
  tell();
  EXPECT_TRUE(slot.attach(trace));
  EXPECT_TRUE(slot.taken());
  tell();
  EXPECT_EQ(account->calls, 8);
  EXPECT_EQ(trace->calls, 4);
  slot.end_account(trace.get());  // another
  slot.detach(trace.get());
  tell();
  EXPECT_EQ(account->calls, 12);
  EXPECT_EQ(trace->calls, 4);
  slot.set(trace);
  slot.end_account(account.get());
  tell();
  EXPECT_EQ(account->calls, 12);
  EXPECT_EQ(trace->calls, 8);
  slot.set(nullptr);
  EXPECT_EQ(slot.get(), nullptr);
}

TEST(ObserverSlot, TellsSeveralAccountsUntilEachEnds)
{
  observer_slot slot;
  std::array const told{
    std::make_shared<counting>(), std::make_shared<counting>(), std::make_shared<counting>()};
  auto const trace = std::make_shared<counting>();
  auto const calls = [&] {
    if (slot.get() != nullptr) { slot.get()->moved({0, 1}, 1, traffic::evicted); }
    return std::array{std::exchange(told[0]->calls, 0),
                      std::exchange(told[1]->calls, 0),
                      std::exchange(told[2]->calls, 0),
                      std::exchange(trace->calls, 0)};
  };
  for (auto const& each : told) {
    slot.set_account(each);
    slot.set_account(each);  // once is enough
  }
  EXPECT_EQ(calls(), (std::array{1, 1, 1, 0}));
  slot.set(trace);
  slot.end_account(told[1].get());
  EXPECT_EQ(calls(), (std::array{1, 0, 1, 1}));
  slot.end_account(told[2].get());
  slot.detach(trace.get());
  EXPECT_EQ(calls(), (std::array{1, 0, 0, 0}));
  slot.set_account(told[1]);
  slot.end_account(told[0].get());
  slot.set(trace);
  EXPECT_EQ(calls(), (std::array{0, 1, 0, 1}));
  told[1]->is_finished = true;
  slot.set_account(told[2]);
  EXPECT_EQ(calls(), (std::array{0, 0, 1, 1}));
  slot.set(nullptr);
  slot.end_account(told[2].get());
  EXPECT_EQ(slot.get(), nullptr);
}

}  // namespace
}  // namespace rmm_uvm::monitor

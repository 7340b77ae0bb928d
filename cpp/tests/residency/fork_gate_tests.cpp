// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/forked.hpp"

#include <rmm_uvm/residency/fork_gate.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

namespace rmm_uvm {
namespace {

using namespace std::chrono_literals;
using tests::in_child;

/** @brief A thread that takes a lock again and again, and looks at its gate in between. */
class locking_thread {
 public:
  locking_thread() = default;
  ~locking_thread()
  {
    ending = true;
    if (thread.joinable()) { thread.join(); }
  }
  locking_thread(locking_thread const&)            = delete;
  locking_thread& operator=(locking_thread const&) = delete;
  locking_thread(locking_thread&&)                 = delete;
  locking_thread& operator=(locking_thread&&)      = delete;

  /**
   * @param looks whether it does what a gate asks
   * @param most_calls of its gate: then it ends
   */
  void start(bool looks = true, int most_calls = std::numeric_limits<int>::max())
  {
    thread = std::thread{[this, looks, most_calls] {
      gate.enter();
      entered = true;
      while (!ending && called < most_calls) {
        if (looks && gate.closed()) {
          gate.leave();
          gate.enter();
        }
        std::lock_guard const held{lock};
        ++rounds;
      }
      gate.leave();
    }};
    while (!entered) {
      std::this_thread::yield();
    }
  }

  std::mutex lock;
  std::atomic<long> rounds{0};
  std::atomic<int> called{0};
  std::atomic<int> told{0};
  std::atomic<bool> entered{false};
  std::atomic<bool> ending{false};
  fork_gate gate{[this] { ++called; }, [this] { ++told; }};
  std::thread thread;
};

TEST(ForkGate, ChildFindsNoLockOfTheThreadTaken)
{
  locking_thread other;
  other.start();
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(in_child([&] { return other.lock.try_lock() && other.told == 1; }));
  }
  EXPECT_GT(other.called, 0);
  EXPECT_EQ(other.told, 0);  // in children only
  auto const then = other.rounds.load();
  while (other.rounds == then) {  // it goes on
    std::this_thread::yield();
  }
}

TEST(ForkGate, ChildMayForkInItsTurnAlsoOnceWhatTheGateBelongedToIsGone)
{
  auto other = std::make_unique<locking_thread>();
  other->start();
  EXPECT_TRUE(in_child([&] {
    // The gate is told of the first fork only: in the child no thread is in it any more.
    bool const below = in_child([&] { return other->lock.try_lock() && other->told == 1; });
    other->called    = 0;
    return below && in_child([] { return true; }) && other->called == 0;
  }));
}

TEST(ForkGate, ThreadThatDoesNotLookIsCalledAgainAndAgain)
{
  locking_thread stubborn;
  stubborn.start(false, 3);
  stubborn.gate.close(std::chrono::steady_clock::now() + 1min);
  EXPECT_GE(stubborn.called, 3);
  stubborn.gate.open();
}

TEST(ForkGate, ThreadThatDoesNotLeaveIsWaitedForUntilTheEnd)
{
  locking_thread stubborn;
  stubborn.start(false);
  auto const end = std::chrono::steady_clock::now() + 20ms;
  stubborn.gate.close(end);
  EXPECT_GE(std::chrono::steady_clock::now(), end);
  stubborn.gate.open();
}

TEST(ForkGate, GateThatNoThreadIsInHoldsUpNothingAndCallsNobody)
{
  locking_thread never;
  never.gate.close(std::chrono::steady_clock::now() + 1h);
  never.gate.open();
  never.start();
  never.ending = true;
  never.thread.join();
  never.gate.close(std::chrono::steady_clock::now() + 1h);
  never.gate.open();
  EXPECT_EQ(never.called, 0);
}

TEST(ForkGate, ThreadThatComesWhileTheProcessForksIsLetInWhenItIsOver)
{
  locking_thread late;
  std::atomic<bool> forking{true};
  late.gate.close(std::chrono::steady_clock::now());
  bool was_early = false;
  std::thread comes{[&] {
    late.gate.enter();
    was_early = forking;
    late.gate.leave();
  }};
  forking = false;
  late.gate.open();
  comes.join();
  EXPECT_FALSE(was_early);
}

TEST(ForkGate, GateThatIsGoneIsNotAsked)
{
  std::atomic<int> told{0};
  {
    fork_gate const gate{[] {}, [&] { ++told; }};
    EXPECT_TRUE(in_child([&] { return told == 1; }));
  }
  EXPECT_TRUE(in_child([&] { return told == 0; }));
}

}  // namespace
}  // namespace rmm_uvm

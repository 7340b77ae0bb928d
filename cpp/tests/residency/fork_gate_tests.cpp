// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/forked.hpp"

#include <rmm_uvm/residency/fork_gate.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace rmm_uvm {
namespace {

using namespace std::chrono_literals;
using tests::in_child;

/** @brief A thread that takes a lock again and again, and looks at its gate in between. */
class locking_thread {
 public:
  explicit locking_thread(std::chrono::nanoseconds patience = 30s)
    : gate{[this] { ++called; }, [this] { ++told; }, patience}
  {
  }
  ~locking_thread()
  {
    ending = true;
    if (thread.joinable()) { thread.join(); }
  }
  locking_thread(locking_thread const&)            = delete;
  locking_thread& operator=(locking_thread const&) = delete;
  locking_thread(locking_thread&&)                 = delete;
  locking_thread& operator=(locking_thread&&)      = delete;

  /** @param looks whether it does what a gate asks */
  void start(bool looks = true)
  {
    thread = std::thread{[this, looks] {
      gate.enter();
      entered = true;
      while (!ending) {
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
  fork_gate gate;
  std::thread thread;
};

TEST(ForkGate, ChildFindsNoLockOfTheThreadTaken)
{
  locking_thread other;
  other.start();
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(in_child([&] { return other.lock.try_lock() && other.told == 1; }));
  }
  EXPECT_EQ(other.called, 100);
  EXPECT_EQ(other.told, 0);  // in children only
  auto const then = other.rounds.load();
  while (other.rounds == then) {  // it goes on
    std::this_thread::yield();
  }
}

TEST(ForkGate, ChildMayForkInItsTurn)
{
  locking_thread other;
  other.start();
  EXPECT_TRUE(in_child([&] {
    return in_child([&] { return other.lock.try_lock() && other.told == 2; }) &&
           other.lock.try_lock();
  }));
}

TEST(ForkGate, ThreadThatDoesNotLookHoldsUpAForkNoLongerThanPatienceLasts)
{
  locking_thread stubborn{20ms};
  stubborn.start(false);
  auto const begin = std::chrono::steady_clock::now();
  // The child has no thread to wait for.
  EXPECT_TRUE(in_child([&] {
    auto const here = std::chrono::steady_clock::now();
    return in_child([] { return true; }) && std::chrono::steady_clock::now() - here < 20s;
  }));
  auto const took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 20ms);
  EXPECT_LT(took, 20s);
}

TEST(ForkGate, GateWithoutAThreadHoldsUpNothing)
{
  locking_thread never{1h};
  EXPECT_TRUE(in_child([&] { return never.told == 1; }));
  never.start();
  never.ending = true;
  never.thread.join();
  EXPECT_TRUE(in_child([&] { return never.told == 1; }));
}

TEST(ForkGate, ThreadThatComesWhileTheProcessForksWaits)
{
  locking_thread late;
  late.gate.close();
  std::thread starts{[&] { late.start(); }};
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(late.entered);
  late.gate.open(false);
  starts.join();
  EXPECT_TRUE(late.entered);
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
